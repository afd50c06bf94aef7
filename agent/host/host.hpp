// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <vector>

#include "core/ports/session.hpp"

namespace driftd::host {

class JailPathLookup;

/// The options of a session factory and its sessions.
struct HostOptions {
  asio::any_io_executor core;                       ///< a single thread; all sessions live on it
  asio::any_io_executor io;                         ///< reads plugin files; if empty, core does
  std::vector<std::filesystem::path> plugin_dirs;   ///< searched in this order
  std::vector<std::filesystem::path> plugin_files;  ///< single files, absolute paths
  std::filesystem::path plugin_lock;                ///< driftd.lock; empty: nothing is pinned
  bool lock_required = false;                       ///< no plugin runs without the lock file
  std::vector<std::filesystem::path> own;           ///< the agent's files and folders, which no plugin may read
  /// Returns more of them, which are known only later: secret files of backends that are added. May be empty.
  std::function<std::vector<std::filesystem::path>()> more_own = {};
  std::filesystem::path worker;                                       ///< path of driftd-provider-host
  std::chrono::milliseconds restart_first{250}, restart_max{30'000};  ///< jittered backoff after a crash
  std::chrono::milliseconds parked{600'000};                          ///< how long a worker stays parked
  int crashes_to_park = 5;                                            ///< number of crashes within ten minutes
  std::chrono::milliseconds grace{2'000};                             ///< between a deadline and the kill
  std::shared_ptr<JailPathLookup> path_lookup;  ///< shared by all sessions; empty: make_session_factory() creates it
  bool jail_kills = false;                      ///< a denied system call ends the worker; for tests
};

/// Returns true if `pid` is a worker of this agent that is alive or ended less than a minute ago: what it sent may
/// arrive after its end. Core thread only.
bool is_worker(int pid);

/// Finds plugins in the folders and opens sessions on them. `SessionSpec::provider` is a plugin's id, one of its types
/// as the last scan found them, or the path of a .so. Core thread only; sessions may outlive the factory.
std::shared_ptr<core::SessionFactory> make_session_factory(HostOptions options);

}  // namespace driftd::host
