// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/ports/session.hpp"
#include "ipc/plugin_file.hpp"

namespace driftd::host {

/// What stat(2) returned for a file; all zero if it did not exist. Another stamp means: look at the file again.
struct Stamp {
  std::int64_t mtime_ns = 0, size = 0;  ///< nanoseconds since the epoch; bytes
  std::uint64_t inode = 0;
  bool there() const { return inode != 0; }
  friend bool operator==(const Stamp&, const Stamp&) = default;
};
/// Follows links. All zero also if the file cannot be examined.
Stamp stamp_of(const std::filesystem::path& file);

/// A plugin file from which a session runs its worker.
struct Plugin {
  std::string file;                                ///< its path
  Stamp stamp;                                     ///< when `bytes` were read
  std::shared_ptr<const ipc::PluginFile> bytes;    ///< the sealed copy that was checked, whatever the path leads to now
  std::string pin;                                 ///< the SHA-256 that its bytes must have; empty: any
  std::shared_ptr<const core::ProviderInfo> info;  ///< null if it was not described: a path given without a scan
  /// Returns true if both are the same path with the same content; false if the content of one is not known.
  bool same_bytes(const Plugin& other) const {
    return file == other.file && bytes && other.bytes && bytes->sha256() == other.bytes->sha256();
  }
  friend bool operator==(const Plugin&, const Plugin&) = default;
};

/// Returns all *.so files, folder by folder, sorted by name; not those in subfolders. A folder that is missing or
/// cannot be read counts as empty.
std::vector<std::string> plugins_in(const std::vector<std::filesystem::path>& folders);

}  // namespace driftd::host
