// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace driftd::sinks {

/// Writes lines to a pipe, a FIFO, a terminal or a socket, which another process reads. Waits up to kPatience for a
/// reader that has stopped reading, then fails at once until there is room again. Invariant: lines are never mixed: a
/// line that was written in part is finished before the next begins. Not thread-safe.
class Stream {
 public:
  static constexpr std::chrono::milliseconds kPatience{1'000};

  /// Does not own `fd`. `name` is for messages.
  Stream(int fd, std::string name) : fd_(fd), name_(std::move(name)) {}
  /// Returns `unavailable` if nobody reads. If the same line is passed again, the part that was already written is not
  /// repeated.
  Status write(std::string_view line);

 private:
  Status drain();
  bool wait_for_room();  ///< false if there is none within kPatience

  int fd_;
  std::string name_;
  std::string line_;         ///< the line that was written in part, with its newline
  std::size_t written_ = 0;  ///< bytes of it that were written
  bool stuck_ = false;       ///< the reader did not read during the last wait
};

/// Opens a new descriptor for a stream that other processes hold too, so that O_NONBLOCK, which belongs to the open
/// file description, affects only us. Returns -1 if this is not possible (a socket; a pipe of another user).
int reopen_without_blocking(int fd);

}  // namespace driftd::sinks
