// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "sinks/file/settings.hpp"
#include "sinks/file/stream.hpp"

namespace driftd::sinks {

/// A file of lines, appended. Invariant: between calls it ends with a whole line: a torn last line (a kill in the
/// middle of a write) is cut off by open(), a short write (disk full) at once. A file that somebody removes or moves is
/// made anew, and what was not synced before then counts as lost: the next sync() says so. Not thread-safe.
class LogFile {
 public:
  explicit LogFile(FileSettings settings) : settings_(std::move(settings)) {}
  ~LogFile();
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;

  /// Opens or creates (0640). Without a path: stdout. What is no regular file (a pipe, a FIFO, a terminal) is not cut,
  /// rotated or synced, and a reader that stands still is not waited for (Stream).
  Status open();
  /// Writes one line (without its end); rotates first when it would pass the limit.
  Status write(std::string_view line);
  /// fdatasync of what was written. Fails if lines since the last sync went to a file that is no longer at its path:
  /// they have to be written again.
  Status sync();

 private:
  Status open_stdout();
  Status open_again();
  Status cut_torn_line();
  bool at_its_path();
  Status follow_path();
  Status rotate();
  Status shift_rotated() const;
  Status failure(const std::string& doing) const;

  FileSettings settings_;
  int fd_ = -1;
  bool ours_ = false;             ///< a descriptor that open() opened
  std::optional<Stream> stream_;  ///< it is no regular file
  std::int64_t size_ = 0;
  bool unsynced_ = false;  ///< lines since the last sync
  bool astray_ = false;    ///< such lines are in a file that is no longer at its path
};

}  // namespace driftd::sinks
