// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <vector>

#include "core/ports/session.hpp"

namespace driftd::host {

class JailPathLookup;

/// What a session factory and its sessions are made with.
struct HostOptions {
  asio::any_io_executor core;                       ///< one thread; all sessions live on it
  asio::any_io_executor io;                         ///< plugin files are read on it; empty: on core
  std::vector<std::filesystem::path> plugin_dirs;   ///< searched in this order
  std::vector<std::filesystem::path> plugin_files;  ///< named one by one, absolute
  std::filesystem::path plugin_lock;                ///< driftd.lock; empty: nothing is pinned
  bool lock_required = false;                       ///< without that file nothing runs
  std::vector<std::filesystem::path> own;           ///< the agent's files and folders: no plugin reads them
  std::filesystem::path worker;                     ///< driftd-provider-host
  std::vector<std::string> experimental;            ///< extensions allowed by the operator
  std::chrono::milliseconds restart_first{250}, restart_max{30'000};  ///< jittered backoff after a crash
  std::chrono::milliseconds parked{600'000};                          ///< a parked worker gets another try after this
  int crashes_to_park = 5;                                            ///< within ten minutes
  std::chrono::milliseconds grace{2'000};                             ///< between a deadline and the kill
  std::shared_ptr<JailPathLookup> path_lookup;  ///< of all sessions; empty: make_session_factory() makes it
  bool jail_kills = false;                      ///< a denied call ends the worker; for tests
};

/// A worker process of this agent that lives, or ended less than a minute ago: what it sent may arrive after its end.
/// Core thread only.
bool is_worker(int pid);

/// Finds plugins in the folders and opens sessions on them. `SessionSpec::provider` is a plugin's id or one of its
/// types as found by the last scan, or the path of a .so. Core thread only; sessions may outlive the factory.
std::shared_ptr<core::SessionFactory> make_session_factory(HostOptions options);

}  // namespace driftd::host
