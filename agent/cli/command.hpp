// SPDX-License-Identifier: Apache-2.0
// Shared by the files of all subcommands. add_NAME adds a subcommand to the command line; its callback sets
// Context::exit.
#pragma once

#include <functional>
#include <ostream>
#include <string>

#include "cli/cli.hpp"
#include "cli/client.hpp"
#include "cli/exit_codes.hpp"
#include "cli/fields.hpp"
#include "cli/table.hpp"

namespace CLI {
class App;
}

namespace driftd::cli {

/// One invocation: its options and output streams. It must outlive every callback.
struct Context {
  const Streams& streams;
  const Hooks& hooks;
  std::string config;            ///< --config, $DRIFTD_CONFIG, or the package's default path
  bool config_given = false;     ///< `config` comes from the option or the environment
  std::string socket;            ///< --socket or $DRIFTD_SOCKET; empty: from the config or the package
  std::string output = "table";  ///< or `json`
  int exit = kOk;                ///< what the callback sets

  bool json() const { return output == "json"; }  ///< --output json
  std::ostream& out() const { return streams.out; }
  /// Returns a client for `socket`. If it is empty, uses admin.socket of a given config, else the package's default.
  Client client() const;
  /// Prints `driftd: message` to err and returns the exit code.
  int fail(const Failure& failure) const;
  int fail(int code, const std::string& message) const { return fail(Failure{code, message}); }
  /// Prints the answer as JSON if --output says so, else calls show(answer). Returns kOk or the failure's exit code.
  template <class Show>
  int print(const Outcome<core::Value>& answer, Show show) const {
    if (!answer) return fail(answer.error());
    if (json()) {
      out() << json_text(*answer) << "\n";
    } else {
      show(*answer);
    }
    return kOk;
  }
  /// Prints the table, or `when_empty` if it has no rows.
  void print(const Table& table, const char* when_empty) const;
};

void add_run(CLI::App& app, Context& context);
void add_validate(CLI::App& app, Context& context);
void add_once(CLI::App& app, Context& context);
void add_status(CLI::App& app, Context& context);
void add_backends(CLI::App& app, Context& context);
void add_discover(CLI::App& app, Context& context);
void add_resources(CLI::App& app, Context& context);
void add_drifts(CLI::App& app, Context& context);
void add_events(CLI::App& app, Context& context);
void add_decisions(CLI::App& app, Context& context);  ///< approve, reject, ignore, undo
void add_enforce(CLI::App& app, Context& context);
void add_operations(CLI::App& app, Context& context);
void add_refresh(CLI::App& app, Context& context);
void add_explain(CLI::App& app, Context& context);
void add_diff(CLI::App& app, Context& context);
void add_queue(CLI::App& app, Context& context);
void add_silence(CLI::App& app, Context& context);  ///< add, list, expire
void add_books(CLI::App& app, Context& context);
void add_deadletter(CLI::App& app, Context& context);
void add_replay(CLI::App& app, Context& context);
void add_reload(CLI::App& app, Context& context);
void add_schema(CLI::App& app, Context& context);
void add_plugin(CLI::App& app, Context& context);
void add_new_provider(CLI::App& app, Context& context);
void add_plugin_describe(CLI::App& plugin, Context& context);  ///< a subcommand of plugin
void add_plugin_files(CLI::App& plugin, Context& context);     ///< lock and check, below plugin
void add_policy(CLI::App& app, Context& context);              ///< policy test, policy explain
void add_audit(CLI::App& app, Context& context);
void add_audit_export(CLI::App& audit, Context& context);  ///< a subcommand of audit
void add_audit_verify(CLI::App& audit, Context& context);  ///< the same
/// Asks the agent to check its audit log, and prints what it found (audit_verify.cpp). Returns kFinding if it is
/// broken.
int verify_audit(const Context& context, const std::string& file, const std::string& anchor);
void add_backup(CLI::App& app, Context& context);  ///< backup, restore, verify
void add_key(CLI::App& app, Context& context);     ///< key, key rotate, key new
void add_changelog_sidecar(CLI::App& app, Context& context);
void add_test(CLI::App& app, Context& context);  ///< shows and sends what a sink gets
void add_version(CLI::App& app, Context& context);

/// Loads the configuration for a command that does not ask the agent (backup.cpp). Secret references are not resolved,
/// except that `with_key` resolves the installation key's if this process can read it.
Outcome<config::Config> load_offline_config(const Context& context, bool with_key = false);
/// Prints the result of a command that did not ask the agent. Returns the exit code: kUsage for `invalid`, kUnreachable
/// for any other error (backup.cpp).
int finish_offline(const Context& context, const Result<core::Value>& done,
                   const std::function<void(const core::Value&)>& show);

/// Prints how many rows the limit cut off, and which globs matched nothing (drifts.cpp).
void print_omitted(const Context& context, const core::Value& answer, std::size_t shown);
/// Prints drifts as a table with one change per line (drifts.cpp).
void print_drifts(const Context& context, const core::Value::Array& drifts);
/// Returns what people have done about a drift so far: `, approved by 1 of 2, claimed by kim until …`. Empty if
/// nothing.
std::string progress_of(const core::Value& drift);
/// Prints the results of refreshed backends (refresh.cpp). Returns kIncomplete if one failed or is only partly listed.
int print_refreshed(const Context& context, const core::Value& answer);
/// Returns kIncomplete if a backend failed or is only partly listed, else kOk (refresh.cpp).
int refresh_exit_code(const core::Value& answer);

}  // namespace driftd::cli
