// SPDX-License-Identifier: Apache-2.0
// What every subcommand's file is made of: add_NAME hangs it into the command line, its callback sets Context::exit.
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

/// One invocation: its options and where it prints. Lives longer than every callback.
struct Context {
  const Streams& streams;
  const Hooks& hooks;
  std::string config;         ///< --config, $DRIFTD_CONFIG, or the packaged place
  bool config_given = false;  ///< by option or environment
  std::string socket;         ///< --socket or $DRIFTD_SOCKET; empty: as the config or the package says
  std::string output = "table";
  int exit = kOk;

  bool json() const { return output == "json"; }
  std::ostream& out() const { return streams.out; }
  /// The agent behind socket; without one named, behind admin.socket of a config that was given.
  Client client() const;
  /// Prints `driftd: message` to err and returns the code.
  int fail(const Failure& failure) const;
  int fail(int code, const std::string& message) const { return fail(Failure{code, message}); }
  /// Prints the answer as JSON when that was asked for; else calls show(answer). Returns kOk or the failure's code.
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
void add_refresh(CLI::App& app, Context& context);
void add_explain(CLI::App& app, Context& context);
void add_diff(CLI::App& app, Context& context);
void add_queue(CLI::App& app, Context& context);
void add_deadletter(CLI::App& app, Context& context);
void add_replay(CLI::App& app, Context& context);
void add_reload(CLI::App& app, Context& context);
void add_schema(CLI::App& app, Context& context);
void add_plugin(CLI::App& app, Context& context);
void add_new_provider(CLI::App& app, Context& context);
void add_plugin_describe(CLI::App& plugin, Context& context);  ///< a subcommand of plugin
void add_plugin_files(CLI::App& plugin, Context& context);     ///< lock and check, below plugin
void add_audit(CLI::App& app, Context& context);
void add_backup(CLI::App& app, Context& context);  ///< backup, restore
void add_key(CLI::App& app, Context& context);     ///< key, key rotate, key new
void add_version(CLI::App& app, Context& context);

/// The configuration for a command that does not ask the agent; references to secrets are not read, but
/// `with_key` that of the installation's key, where this process can (backup.cpp).
Outcome<config::Config> config_beside_agent(const Context& context, bool with_key = false);
int finish_offline(const Context& context, const Result<core::Value>& done,
                   const std::function<void(const core::Value&)>& show);

/// Says how much of a list its limit cut off, and which globs brought nothing (drifts.cpp).
void print_omitted(const Context& context, const core::Value& answer, std::size_t shown);
/// Prints drifts as a table, one change a line (drifts.cpp).
void print_drifts(const Context& context, const core::Value::Array& drifts);
/// Prints what refreshes of backends came to (refresh.cpp); kIncomplete when one failed or listed only part.
int print_refreshed(const Context& context, const core::Value& answer);
int refresh_exit_code(const core::Value& answer);

}  // namespace driftd::cli
