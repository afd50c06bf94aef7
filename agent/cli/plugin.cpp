// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>

#include "cli/command.hpp"

namespace driftd::cli {
namespace {

void show(const Context& context, const core::Value& answer) {
  Table table({"PROVIDER", "VERSION", "TYPES", "KINDS", "WATCH", "FILE", "ERROR"});
  for (const auto& plugin : list(answer, "plugins")) {
    table.add({text(plugin, "id"), text(plugin, "version"), join(list(plugin, "types")), join(list(plugin, "kinds")),
               flag(plugin, "watch") ? "yes" : "", text(plugin, "file"), {text(plugin, "error"), Colour::red}});
  }
  context.print(table, "no plugins found; see agent.plugin_dirs");
}

}  // namespace

void add_plugin(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand("plugin", "provider plugins");
  command->require_subcommand(1);
  command->add_subcommand("ls", "those that the agent found, also the ones that do not load")->callback([&context] {
    context.exit = context.print(context.client().get("/v1/plugins"), [&](const auto& answer) { show(context, answer); });
  });
}

}  // namespace driftd::cli
