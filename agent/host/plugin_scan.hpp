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

/// A file as it was when it was looked at; all zero: it was not there.
struct Stamp {
  std::int64_t mtime_ns = 0, size = 0;
  std::uint64_t inode = 0;
  bool there() const { return inode != 0; }
  friend bool operator==(const Stamp&, const Stamp&) = default;
};
Stamp stamp_of(const std::filesystem::path& file);

/// A plugin file to serve from.
struct Plugin {
  std::string file;
  Stamp stamp;
  std::shared_ptr<const ipc::PluginFile> bytes;    ///< sealed: what was looked at, whatever lies at the path by now
  std::string pin;                                 ///< what its bytes had to hash to; empty: anything
  std::shared_ptr<const core::ProviderInfo> info;  ///< null: not described (a path given without a scan)
  bool same_bytes(const Plugin& other) const {
    return file == other.file && bytes && other.bytes && bytes->sha256() == other.bytes->sha256();
  }
  friend bool operator==(const Plugin&, const Plugin&) = default;
};

/// All *.so of the folders, folder by folder, by name. A folder that is not there holds none.
std::vector<std::string> plugins_in(const std::vector<std::filesystem::path>& folders);

}  // namespace driftd::host
