// SPDX-License-Identifier: Apache-2.0
// The progress of the store, written beside the database (ADR 0012).
#pragma once

#include <cstdint>
#include <filesystem>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "store/files.hpp"

namespace driftd::store {

struct Mark {
  std::uint64_t incarnation = 0;
  std::uint64_t commits = 0;  ///< groups that the store has ever committed; never decreases
  std::int64_t seq = 0;       ///< newest event
  std::uint64_t hlc = 0;      ///< clock of the newest event's id
  Nanos at_ns = 0;            ///< time of the last commit
};

/// `data_dir/store.mark`, mode 0600: one line that is overwritten in place after each commit. It is never ahead of the
/// durable state, because the commit was synced before. It is not synced itself: a killed process loses nothing of it,
/// and after a power loss it may be older, which only detects less. [store thread]
class MarkFile {
 public:
  /// Opens the file; creates it if it is missing.
  static Result<MarkFile> open(const std::filesystem::path& file);
  Status write(const Mark& mark);
  Status sync();

 private:
  MarkFile(Descriptor file, std::filesystem::path path) : file_(std::move(file)), path_(std::move(path)) {}
  Descriptor file_;
  std::filesystem::path path_;
};

/// Returns `not_found` if there is no mark, `corrupt` if the file is not a mark or its checksum is wrong.
Result<Mark> read_mark(const std::filesystem::path& file);

}  // namespace driftd::store
