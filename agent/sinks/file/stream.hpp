// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace driftd::sinks {

/// Lines to whom somebody else drains: a pipe, a FIFO, a terminal, a socket. It waits for a reader who stands still no
/// longer than kPatience, then fails at once until there is room again. Invariant: no line is joined with another: one
/// that was written in part is finished before the next begins. Not thread-safe.
class Stream {
 public:
  static constexpr std::chrono::milliseconds kPatience{1'000};

  /// Does not own `fd`. `name` is for messages.
  Stream(int fd, std::string name) : fd_(fd), name_(std::move(name)) {}
  /// `unavailable`: nobody reads. The same line given again is not written twice when its first part was taken.
  Status write(std::string_view line);

 private:
  Status drain();
  bool room();

  int fd_;
  std::string name_;
  std::string begun_;      ///< the line that was written in part, with its end
  std::size_t taken_ = 0;  ///< bytes of it
  bool stuck_ = false;     ///< the reader stood still when it was last waited for
};

/// A descriptor of its own for a stream that others hold too, so that not blocking is our matter alone (O_NONBLOCK is
/// of the open file description). -1: there is none for this one (a socket; a pipe of another user).
int open_again_without_blocking(int fd);

}  // namespace driftd::sinks
