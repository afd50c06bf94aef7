// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/ports/session.hpp"
#include "ipc/plugin_file.hpp"

namespace driftd::host {

/// What a supervisor's worker is for. This decides whether a dead worker is replaced and who reads the reports.
enum class WorkerRole {
  scan,     ///< describes a plugin file: loads without open; the first failure is final
  trial,    ///< a new version of a plugin: until adopt() the first failure is final and not a crash of the backend
  serving,  ///< makes the calls of its backend
  retired,  ///< another version has taken over; calls that are running may end
};

/// What a supervisor is started with.
struct SupervisorSpec {
  core::SessionSpec session;
  std::string file;                              ///< path of the plugin
  std::shared_ptr<const ipc::PluginFile> bytes;  ///< sealed copy of the file that every worker loads
  std::string schema;                            ///< settings schema as last seen; empty: unknown
  WorkerRole role = WorkerRole::serving;
  std::function<void()> jail_changed;  ///< called when a worker with a new jail runs, which may read other files
  std::function<void()> worker_ended;  ///< called when there is no worker any more; the next one may follow
};

}  // namespace driftd::host
