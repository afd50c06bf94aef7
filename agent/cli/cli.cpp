// SPDX-License-Identifier: Apache-2.0
#include "cli/cli.hpp"

#include <unistd.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <sstream>

#include "cli/command.hpp"

namespace driftd::cli {
namespace {

constexpr const char* kConfigFile = "/etc/driftd/driftd.yaml";
constexpr const char* kSocket = "/run/driftd/driftd.sock";

void add_all(CLI::App& app, Context& context) {
  for (const auto add : {add_run,        add_validate, add_once,   add_status,    add_backends, add_discover,
                         add_resources,  add_drifts,   add_events, add_decisions, add_enforce,  add_operations,
                         add_refresh,    add_explain,  add_diff,   add_queue,     add_silence,  add_books,
                         add_deadletter, add_replay,   add_reload, add_schema,    add_plugin,   add_new_provider,
                         add_policy,     add_audit,    add_backup, add_key,       add_test,     add_changelog_sidecar,
                         add_version}) {
    add(app, context);
  }
  for (auto* command : app.get_subcommands({})) {
    command->fallthrough();
    for (auto* below : command->get_subcommands({})) below->fallthrough(!below->get_prefix_command());
  }
}

bool wants_colour() {
  const char* no_colour = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  const bool dumb = terminal != nullptr && std::string_view(terminal) == "dumb";
  return ::isatty(STDOUT_FILENO) == 1 && (no_colour == nullptr || *no_colour == '\0') && !dumb;
}

}  // namespace

Client Context::client() const {
  if (!socket.empty()) return Client(socket);
  if (!config_given) return Client(kSocket);
  const auto named = config::read_admin_socket(config);
  if (named) return Client(*named);
  return Client(Failure{
      kConfig,
      config::render(named.error()) +
          "the agent's socket is not known without this file: correct it, or name the socket with --socket PATH"});
}

int Context::fail(const Failure& failure) const {
  streams.err << "driftd: ";
  std::istringstream lines(failure.message);
  for (std::string line; std::getline(lines, line);) streams.err << printable(line) << "\n";
  return failure.exit;
}

void Context::print(const Table& table, const char* when_empty) const {
  if (table.empty()) {
    out() << when_empty << "\n";
  } else {
    table.print(out(), streams.colour);
  }
}

int run(std::vector<std::string> arguments, const Streams& streams, const Hooks& hooks) {
  Context context{streams, hooks, kConfigFile, false, "", "table", kOk};
  CLI::App app("driftd notices that a running system no longer is what you agreed it is.", "driftd");
  app.require_subcommand(0, 1);  // so that an unknown one is named instead of missed
  auto* file = app.add_option("-c,--config", context.config, "configuration file")->envname("DRIFTD_CONFIG");
  app.add_option("--socket", context.socket, "the agent's Unix socket")->envname("DRIFTD_SOCKET");
  app.add_option("-o,--output", context.output, "table or json")->check(CLI::IsMember({"table", "json"}));
  app.parse_complete_callback([&] { context.config_given = file->count() > 0; });
  add_all(app, context);
  try {
    std::reverse(arguments.begin(), arguments.end());
    app.parse(std::move(arguments));
  } catch (const CLI::Success& e) {  // --help
    return app.exit(e, streams.out, streams.err);
  } catch (const CLI::ParseError& e) {
    app.exit(e, streams.err, streams.err);
    return kUsage;
  }
  if (app.get_subcommands().empty()) {
    streams.err << app.help();
    return kUsage;
  }
  return context.exit;
}

int run(int argc, char** argv, const Hooks& hooks) {
  std::ios::sync_with_stdio(false);
  std::istream* person = ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1 ? &std::cin : nullptr;
  const int code = run(std::vector<std::string>(argv + 1, argv + argc),
                       {std::cout, std::cerr, wants_colour(), person, ::isatty(STDOUT_FILENO) == 1}, hooks);
  std::cout.flush();
  return code;
}

}  // namespace driftd::cli
