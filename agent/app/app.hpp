// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "config/config.hpp"
#include "core/value/value.hpp"

namespace driftd::app {

/// This process writes no core and is not read by another one's debugger: also a command that runs for a second may
/// hold every secret of the config. First of all in main.
void harden();

/// Runs the agent until SIGTERM or SIGINT; returns an exit code (cli/exit_codes.hpp). Errors go to stderr.
int run(const std::string& config_file);

/// `driftd once`: one full refresh of every backend.
struct OnceOptions {
  std::string baseline_file;  ///< compare with this record, touch no store
  std::string record_file;    ///< write what was seen, touch no store
};
/// What it found, in the API's form: `refreshed` and `drifts` (docs/api.md).
struct OnceResult {
  int exit = 0;       ///< of a failure: 69 the store is locked or unreadable, 78 the config is wrong; else the caller's
  std::string error;  ///< empty: it ran
  core::Value::Array refreshed, drifts;
};
/// Without a file: against the store, under its lock. Blocks.
OnceResult once(const std::string& config_file, const OnceOptions& options);

/// What `driftd validate` finds beyond the file's own form. `missing`: backends whose plugin is not there or is
/// refused; the agent runs without them and takes them up when the plugin arrives.
struct CheckReport {
  std::vector<config::ConfigError> errors, missing;
  std::vector<config::ConfigError> left{};   ///< sinks and backends of the store that are in the config no more
  std::vector<config::ConfigError> notes{};  ///< what could not be looked at
};
/// Checks what only other rooms know: sink settings, and backend settings against their plugins' schemas as far as the
/// plugins are found; and the store, where there is one: read only, without its lock. Blocks.
CheckReport check_settings(const config::Config& config);

/// `driftd validate --run-programs`: runs each program of `${exec:…}` once, all together, and says what is wrong with
/// its answer. Blocks, at most as long as their time-outs.
std::vector<config::ConfigError> try_programs(const config::Config& config);

/// `driftd backup`: copies the store, also beside the running agent; verified. In the API's form: `file`, `key_file`,
/// and what it holds. Blocks.
Result<core::Value> back_up(const config::Config& config, const std::string& to, bool with_key);
/// `driftd restore`: puts a backup in place of the store, which is kept. `conflict` while an agent runs. `unchecked` in
/// the answer: why whether the key fits was not looked at. Blocks.
Result<core::Value> restore(const config::Config& config, const std::string& from, const std::string& key);

/// `driftd key`: ids, age and rights of the installation's key, and whether the store is under it. `key_file`: where it
/// is, for one that this process does not find where the config says; may be empty. Blocks.
Result<core::Value> key_state(const config::Config& config, const std::string& key_file);
/// `driftd key rotate`: a next layer, and the store rewritten under it. `conflict` while an agent runs. A key that lies
/// elsewhere goes with its next layer to `out`, a file that is not there yet; then no store is touched. Blocks.
struct KeyRotation {
  std::string reason;                           ///< for the audit log
  std::string key_file, out;                    ///< where the config names the key
  bool slow = false;                            ///< the next layer is a slow one (ADR 0014)
  std::function<void(const std::string&)> say;  ///< hears, before it begins, what takes long
};
Result<core::Value> rotate_key(const config::Config& config, const KeyRotation& asked);
/// `driftd key new`: into `out`, a file that is not there yet, or, where it is empty, as `text` of the answer.
Result<core::Value> new_key(const std::string& out);

/// `driftd plugin lock`: pins the plugins that are installed now. Atomic: the old lock or the new one. Blocks.
struct LockReport {
  struct Line {
    std::string verb, plugin, sha256;
  };  ///< verb: added | changed | unchanged | removed
  std::string file;
  std::vector<Line> lines;
};
/// `lock_file` empty: agent.plugin_lock.
Result<LockReport> lock_plugins(const config::Config& config, const std::string& lock_file);

/// `denied` when somebody else may write the plugin, or `lock_file` pins other bytes for it. A lock that is not there
/// or does not name it says nothing: it is looked at before it is pinned. Blocks.
Status admit_plugin(const std::string& plugin, const std::string& lock_file);

}  // namespace driftd::app
