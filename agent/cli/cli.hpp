// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "app/app.hpp"
#include "app/change_log.hpp"
#include "config/config.hpp"

namespace driftd::cli {

/// Functions that need the whole agent. main.cpp passes those of the app.
struct Hooks {
  /// Returns the exit code. `change_logs`: globs of providers.
  std::function<int(const std::string& config_file, const std::vector<std::string>& change_logs)> run;
  /// Refreshes everything once.
  std::function<app::OnceResult(const std::string& config_file, const app::OnceOptions&)> once;
  /// Checks what config::load() cannot: settings against the schemas of plugins, and what the store still needs. May be
  /// empty.
  std::function<app::CheckReport(const config::Config&)> check_config;
  /// Runs each program of `${exec:…}` once and returns what is wrong with its answer. May be empty.
  std::function<std::vector<config::ConfigError>(const config::Config&)> try_programs;
  /// The next seven return what the command prints. Empty: the binary holds no agent, and the command fails with
  /// kUsage.
  std::function<Result<core::Value>(const config::Config&, const std::string& to, bool with_key)> back_up;
  std::function<Result<core::Value>(const config::Config&, const std::string& from, const std::string& key)> restore;
  std::function<Result<core::Value>(const std::string& file, bool background)> verify;
  std::function<Result<core::AuditProof>(const std::string& file, const std::string& anchor)> verify_audit;
  std::function<Result<core::Value>(const config::Config&, const std::string& key_file)> key_state;
  std::function<Result<core::Value>(const config::Config&, const app::KeyRotation&)> rotate_key;
  std::function<Result<core::Value>(const std::string& out)> new_key;
  /// Returns the body that a sink would send about an event. Empty as above.
  std::function<Result<std::string>(const config::SinkSpec&, const core::StoredEvent&)> render_event;
  /// Sends it once, and returns what the receiver answered. Empty as above.
  std::function<Result<std::string>(const config::SinkSpec&, const core::StoredEvent&)> send_event;
  std::function<Result<app::LockReport>(const config::Config&, const std::string& lock_file)> lock_plugins;
  /// Returns an error unless the plugin's code may run for `driftd plugin check`. `lock` may be empty.
  std::function<Status(const std::string& plugin, const std::string& lock)> admit_plugin;
  /// Receives change logs until a signal; returns the exit code. May be empty.
  std::function<int(const app::SidecarOptions&)> change_log_sidecar;
};

/// Where a command line reads and writes.
struct Streams {
  std::ostream& out;                ///< answers
  std::ostream& err;                ///< messages and warnings
  bool colour = false;              ///< escape sequences may be written
  std::istream* answers = nullptr;  ///< input of a person at a terminal; null if nobody can be asked
  bool shown = false;               ///< `out` is a terminal, so no key may be printed
};

/// Runs one command line (without the program's name). Returns the exit code (exit_codes.hpp).
int run(std::vector<std::string> arguments, const Streams& streams, const Hooks& hooks);
/// Does the same for main(), with stdout and stderr. Uses colour only on a terminal and only without NO_COLOR.
int run(int argc, char** argv, const Hooks& hooks);

}  // namespace driftd::cli
