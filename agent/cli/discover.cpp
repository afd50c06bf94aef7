// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/command.hpp"

namespace driftd::cli {
namespace {

std::string pairs(const core::Value& object, const char* name) {
  std::string out;
  const core::Value all = member(object, name);
  if (all.object() == nullptr) return out;
  for (const auto& [key, value] : *all.object()) out += (out.empty() ? "" : ", ") + key + "=" + text(value);
  return out;
}

void show_discovered(const Context& context, const core::Value& answer) {
  Table table({"NAME", "TYPE", "VERSION", "ENDPOINTS", "EXTERNAL", "CREDENTIALS", "LABELS", "ORIGIN"});
  for (const auto& backend : list(answer, "discovered")) {
    table.add({text(backend, "name"), text(backend, "type"), text(backend, "version"), join(list(backend, "endpoints")),
               flag(backend, "external") ? "yes" : "no", pairs(backend, "credentials"), pairs(backend, "labels"),
               text(backend, "origin")});
  }
  context.print(table, "no backends discovered");
  for (const auto& diagnostic : list(answer, "diagnostics")) {
    context.out() << printable(text(diagnostic, "code") + ": " + text(diagnostic, "message")) << "\n";
  }
  if (!flag(answer, "complete")) {
    context.out() << "not complete: a backend that is not listed may still exist\n";
  }
}

}  // namespace

void add_discover(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand("discover", "the backends that a backend's provider knows of");
  auto backend = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false);
  command->add_option("BACKEND", *backend, "a configured backend, for example a cluster or a state file")->required();
  command->add_flag("--json", *json, "as -o json");
  command->callback([&context, backend, json] {
    if (*json) context.output = "json";
    const std::string path = "/v1/backends/" + escape(*backend) + "/discovered";
    const auto answer = context.client().get(path, {}, std::chrono::seconds(600));  // a provider may take this long
    context.exit = context.print(answer, [&](const auto& found) { show_discovered(context, found); });
  });
}

}  // namespace driftd::cli
