// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "config/config.hpp"
#include "core/audit.hpp"
#include "core/value/value.hpp"

namespace driftd::app {

/// Disables core dumps and debuggers for this process: even a command that runs for a second may hold every secret of
/// the config. Call it first in main.
void harden();

/// Runs the agent until SIGTERM or SIGINT. `change_logs`: globs of providers that have a change log, besides those of
/// the configuration. Returns an exit code (cli/exit_codes.hpp). Errors go to stderr.
int run(const std::string& config_file, const std::vector<std::string>& change_logs);

/// Options of `driftd once`, one full refresh of every backend.
struct OnceOptions {
  std::string baseline_file;  ///< compare with this record instead of the store
  std::string record_file;    ///< write what was read to this record instead of the store
};
/// The result of `driftd once`, in the form of the API: `refreshed` and `drifts` (docs/api.md).
struct OnceResult {
  int exit = 0;  ///< on failure: 69 the store is locked or unreadable, 78 the config is invalid; otherwise the caller
                 ///< decides
  std::string error;  ///< empty if it ran
  core::Value::Array refreshed, drifts;
};
/// Runs `driftd once`. Without a file it compares with the store, under its lock. Blocks.
OnceResult once(const std::string& config_file, const OnceOptions& options);

/// What `driftd validate` finds beyond the config's syntax. `missing`: backends whose plugin is missing or refused; the
/// agent runs without them and starts them when the plugin arrives.
struct CheckReport {
  std::vector<config::ConfigError> errors, missing;
  std::vector<config::ConfigError> left{};   ///< stored sinks and backends that are no longer in the config
  std::vector<config::ConfigError> notes{};  ///< what could not be checked, and rules that do nothing
};
/// Checks what only other rooms know: the installation key; the groups of users; the worker program; sink settings;
/// backend settings against the schemas of the plugins that are found; and the store if there is one, read only and
/// without its lock. Blocks.
CheckReport check_config(const config::Config& config);

/// Implements `driftd validate --run-programs`: runs each program of `${exec:…}` once, all at the same time, and
/// returns what is wrong with their answers. Blocks, at most for their time-outs.
std::vector<config::ConfigError> try_programs(const config::Config& config);

/// Implements `driftd backup`: copies and verifies the store, also while the agent runs. Returns `file`, `key_file` and
/// the content of the copy in the form of the API. Blocks.
Result<core::Value> back_up(const config::Config& config, const std::string& to, bool with_key);
/// Implements `driftd restore`: replaces the store, which is kept, by a backup. Returns `conflict` while an agent runs.
/// `unchecked` of the result: where the key comes from if it could not be checked that it fits; otherwise empty.
/// Blocks.
Result<core::Value> restore(const config::Config& config, const std::string& from, const std::string& key);
/// Implements `driftd verify`: reads all of a store, also a running agent's, or of a backup. The answer's `damaged` is
/// what was found first; empty if it is whole. `background`: with the lowest priority, and not longer than the process
/// that started it. Returns `not_found` if there is no such file.
Result<core::Value> verify(const std::string& file, bool background);
/// Implements `driftd audit verify FILE` for a store or a backup. `anchor`: `ID:HASH`, or empty.
Result<core::AuditProof> verify_audit(const std::string& file, const std::string& anchor);

/// Implements `driftd key`: returns ids, age and file mode of the installation's key, and whether the store uses it.
/// `key_file`: where the key is if this process cannot find it where the config says; may be empty. Blocks.
Result<core::Value> key_state(const config::Config& config, const std::string& key_file);
/// Options of `driftd key rotate`, which adds a layer to the key and rewrites the store under it. Returns `conflict`
/// while an agent runs. A key that is kept outside of data_dir is written with its next layer to `out`, which must not
/// exist yet; the store is not touched then. Blocks.
struct KeyRotation {
  std::string reason;                           ///< for the audit log
  std::string key_file, out;                    ///< set if the config names the key
  bool slow = false;                            ///< adds a slow layer (ADR 0014)
  std::function<void(const std::string&)> say;  ///< called with a text before a step that takes long
};
Result<core::Value> rotate_key(const config::Config& config, const KeyRotation& asked);
/// Implements `driftd key new`: writes a new key to `out`, which must not exist yet, or returns it as `text` if `out`
/// is empty.
Result<core::Value> new_key(const std::string& out);

/// Implement `driftd test`: the body that a sink would send about an event; and sending it once, by the sink itself
/// with its settings, whose secrets must be resolved. The answer is what the receiver said. Both return `unsupported`
/// for a sink that sends nothing by itself. Sending blocks, for 20 s at most.
Result<std::string> render_event(const config::SinkSpec& spec, const core::StoredEvent& event);
Result<std::string> send_event(const config::SinkSpec& spec, const core::StoredEvent& event);

/// Result of `driftd plugin lock`, which pins the plugins that are installed now. Atomic: the old lock or the new one.
/// Blocks.
struct LockReport {
  struct Line {
    std::string verb, plugin, sha256;
  };  ///< verb: added | changed | unchanged | removed
  std::string file;
  std::vector<Line> lines;
};
/// Empty `lock_file`: agent.plugin_lock.
Result<LockReport> lock_plugins(const config::Config& config, const std::string& lock_file);

/// Returns `denied` if somebody else may write the plugin, or if `lock_file` pins other bytes for it. A missing lock,
/// or one without this plugin, permits it: a plugin is inspected before it is pinned. Blocks.
Status admit_plugin(const std::string& plugin, const std::string& lock_file);

}  // namespace driftd::app
