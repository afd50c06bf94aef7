// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "sinks/file/settings.hpp"
#include "sinks/file/stream.hpp"

namespace driftd::sinks {

/// A file to which lines are appended. Invariant: between calls it ends with a complete line: open() cuts off an
/// incomplete last line (a kill during a write), a short write (disk full) is cut off at once. A file that somebody
/// removes or moves is created again; what was not synced before then counts as lost: nothing is written any more, and
/// every sync() fails, until begin_again(). Otherwise a later line could be in the file before those. Not thread-safe.
class LogFile {
 public:
  explicit LogFile(FileSettings settings) : settings_(std::move(settings)) {}
  ~LogFile();
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;

  /// Opens or creates the file (0640). Without a path: stdout. Something that is not a regular file (a pipe, a FIFO, a
  /// terminal) is not cut, rotated or synced, and a reader that has stopped is not waited for (Stream).
  Status open();
  /// Writes one line (given without its newline). Rotates first if the file would exceed the limit. Fails if lost().
  Status write(std::string_view line);
  /// Calls fdatasync. Fails if lines since the last sync are lost: they must be written again.
  Status sync();
  /// Lines since the last sync went to a file that is no longer at its path, or could not be synced. Any thread.
  bool lost() const { return lost_; }
  void begin_again() { lost_ = unsynced_ = false; }  ///< they are written again from now on

 private:
  Status open_stdout();
  Status reopen();
  Status cut_torn_line();
  bool is_at_its_path();
  Status follow_path();
  Status rotate();
  Status shift_rotated() const;
  Status failure(const std::string& doing) const;
  Status sync_failure();
  Status refuse_if_lost() const;

  FileSettings settings_;
  int fd_ = -1;
  bool ours_ = false;             ///< open() opened the descriptor, so it must be closed
  std::optional<Stream> stream_;  ///< set if it is not a regular file
  std::int64_t size_ = 0;
  bool unsynced_ = false;  ///< there are lines since the last sync
  std::atomic<bool> lost_ = false;
};

}  // namespace driftd::sinks
