// SPDX-License-Identifier: Apache-2.0
// The write-ahead log that the last process left.
#pragma once

#include <filesystem>

#include "base/result.hpp"

namespace driftd::store {

/// Writes each byte of the log again and syncs it, so that all of what SQLite will take from it is on the disk. If an
/// fsync failed, the kernel may show pages that never reached the disk, and no later fsync writes them (the reason why
/// the last process ended). Commits that follow such a hole would be lost with the next power loss. To be called under
/// the lock of data_dir, before SQLite opens the store. Does nothing if there is no log, as after an orderly stop.
/// Returns `internal` if the disk fails.
Status write_log_again(const std::filesystem::path& log);

}  // namespace driftd::store
