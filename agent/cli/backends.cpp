// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>

#include "cli/command.hpp"

namespace driftd::cli {
namespace {

void show_backends(const Context& context, const core::Value& answer) {
  Table table({"BACKEND", "SOURCE", "PROVIDER", "ENDPOINT", "STATE", "HEALTH", "WORKER", "KIND", "RESOURCES", "UNKNOWN",
               "COVERAGE", "REASON"});
  for (const auto& backend : list(answer, "backends")) {
    const std::string state = text(backend, "state");
    const std::string health = text(member(backend, "health"), "state");
    const std::string worker = text(member(backend, "worker"), "state");
    std::vector<Cell> first = {text(backend, "name"),      text(backend, "source"),   text(backend, "provider"),
                               text(backend, "endpoint"),  {state, colour_of(state)}, {health, colour_of(health)},
                               {worker, colour_of(worker)}};
    const auto coverage = list(backend, "coverage");
    for (const auto& kind : coverage) {
      auto row = first;
      const std::string seen = text(kind, "state");
      row.insert(row.end(), {text(kind, "kind"),
                             text(kind, "resources"),
                             text(kind, "unknown"),
                             {seen, seen == "seen" ? Colour::green : Colour::yellow},
                             join(list(kind, "reasons"))});
      table.add(std::move(row));
      first.assign(first.size(), Cell(""));
    }
    if (coverage.empty()) {
      first.insert(first.end(), 5, Cell(""));
      table.add(std::move(first));
    }
  }
  context.print(table, "no backends");
}

}  // namespace

void add_backends(CLI::App& app, Context& context) {
  app.add_subcommand("backends", "the monitored systems and how much of each can be judged")->callback([&context] {
    context.exit = context.print(context.client().get("/v1/backends"),
                                 [&](const auto& answer) { show_backends(context, answer); });
  });
}

}  // namespace driftd::cli
