// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/command.hpp"

namespace driftd::cli {
namespace {

void show(const Context& context, const core::Value& answer) {
  Table table({"AT", "WHO", "DID", "TO", "REASON"});
  for (const auto& row : list(answer, "audit")) {
    table.add({when(text(row, "at")), text(row, "actor"), text(row, "verb"), text(row, "subject"), text(row, "reason")});
  }
  context.print(table, "no decisions yet");
}

}  // namespace

void add_audit(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand("audit", "who decided what, when and why");
  auto query = std::make_shared<Query>();
  command->add_option("--limit", (*query)["limit"], "at most so many (100)");
  command->callback([&context, query] {
    context.exit = context.print(context.client().get("/v1/audit", *query), [&](const auto& answer) { show(context, answer); });
  });
}

}  // namespace driftd::cli
