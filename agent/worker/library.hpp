// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <driftd/sink.h>
#include <filesystem>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "ipc/messages.hpp"
#include "ipc/plugin_file.hpp"

namespace driftd::worker {

/// A plugin that was loaded into this process. It is never unloaded. Immutable; any thread.
struct Library {
  std::string file;               ///< as the agent names it, for people
  driftd_provider_table table{};  ///< full size; functions that the plugin does not have answer UNSUPPORTED. Of a sink
                                  ///< plugin: the functions that both have
  std::optional<driftd_sink_table> sink;  ///< set if it is a sink plugin
  ipc::LoadAnswer loaded;                 ///< what it says of itself
};

/// Loads `file` and negotiates the minor version. Returns `invalid` if it is neither a provider nor a sink plugin,
/// `unsupported` if the versions are incompatible; the message names the fix. The same file (device, inode, time, size)
/// gives the same library, a changed file another one. Returns `internal` if an exception of the plugin crossed the
/// ABI. The result lives as long as the process. Loads one at a time. [any thread]
Result<const Library*> load_library(ipc::PluginFile file, bool in_process);
/// Opens the file with PluginFile::open first.
Result<const Library*> load_library(const std::filesystem::path& file, bool in_process);

}  // namespace driftd::worker
