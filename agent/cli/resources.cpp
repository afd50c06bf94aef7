// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/command.hpp"

namespace driftd::cli {
namespace {

std::string body_of(const core::Value& row) {
  const core::Value observed = member(row, "observed");
  return is_cut(row, "observed") ? text(observed) : core::render(observed);
}

void show_resources(const Context& context, const core::Value& answer, bool bodies) {
  Table table({"BACKEND", "RESOURCE", "PRESENT", "DRIFTS", "OBSERVED AT", bodies ? "BODY" : "BASELINE"});
  int cut = 0;
  for (const auto& row : list(answer, "resources")) {
    const bool present = flag(row, "present");
    const std::string baseline = member(row, "baseline").is_null() ? "none" : "yes";
    table.add({text(row, "backend"),
               text(row, "resource"),
               {present ? "yes" : "no", present ? Colour::none : Colour::red},
               join(list(row, "open_drifts")),
               when(text(row, "observed_at")),
               bodies ? body_of(row) : baseline});
    cut += is_cut(row, "observed") ? 1 : 0;
  }
  context.print(table, "no resources");
  if (bodies && cut > 0) {
    context.out() << "bodies of " << cut
                  << " resources are cut: driftd resources --id ID --whole -o json shows one of them whole\n";
  }
  print_omitted(context, answer, list(answer, "resources").size());
}

}  // namespace

void add_resources(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand("resources", "what is known of a backend's resources; secrets as [REDACTED]");
  auto query = std::make_shared<Query>();
  auto bodies = std::make_shared<bool>(false), whole = std::make_shared<bool>(false);
  command->add_option("BACKEND", (*query)["backend"], "only this backend");
  command->add_option("--kind", (*query)["kind"], "only this kind");
  command->add_option("--id", (*query)["id"], "only this id, or glob");
  command->add_option("--limit", (*query)["limit"], "maximum number of resources (default 1000)");
  command->add_flag("--bodies", *bodies, "show the observed attributes");
  command->add_flag("--whole", *whole, "do not cut bodies of more than 16 KiB");
  command->callback([&context, query, bodies, whole] {
    if (*whole) (*query)["whole"] = "true";
    context.exit = context.print(context.client().get("/v1/resources", *query),
                                 [&](const auto& answer) { show_resources(context, answer, *bodies); });
  });
}

}  // namespace driftd::cli
