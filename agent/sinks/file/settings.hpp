// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>

namespace driftd::sinks {

/// `type: file`, or `type: stdout` when `path` is empty.
struct FileSettings {
  std::filesystem::path path;
  std::int64_t rotate_bytes = 100ll << 20;  ///< limit of the file's size: at the limit it becomes path.1, path.1
                                            ///< becomes path.2 ...
  int keep = 5;                             ///< number of rotated files that are kept
};

}  // namespace driftd::sinks
