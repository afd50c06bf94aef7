// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <driftd/provider.h>
#include <filesystem>
#include <string>

#include "base/result.hpp"
#include "ipc/messages.hpp"
#include "ipc/plugin_file.hpp"

namespace driftd::worker {

/// A plugin in this process: loaded once, never unloaded. Immutable; any thread.
struct Library {
  std::string file;
  driftd_provider_table table{};  ///< full size; what the plugin does not have answers UNSUPPORTED
  ipc::LoadAnswer loaded;         ///< what it said of itself
};

/// Loads `file` and agrees on a minor. `invalid` when it is no provider, `unsupported` when the versions do not meet;
/// the sentence names the fix. The same file (device, inode, time, size) gives the same library, a changed one another.
/// [any thread]
Result<const Library*> load_library(ipc::PluginFile file, bool in_process);
/// The same with PluginFile::open before it.
Result<const Library*> load_library(const std::filesystem::path& file, bool in_process);

}  // namespace driftd::worker
