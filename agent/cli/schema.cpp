// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/command.hpp"

namespace driftd::cli {

void add_schema(CLI::App& app, Context& context) {
  auto* command =
      app.add_subcommand("schema", "JSON Schema of the config; with PROVIDER: of its settings or of a kind");
  auto query = std::make_shared<Query>();
  command->add_option("PROVIDER", (*query)["provider"], "a provider that the running agent has");
  command->add_option("WHAT", (*query)["what"], "settings (default) or a kind");
  command->callback([&context, query] {
    if ((*query)["provider"].empty()) {
      context.out() << config::json_schema();
      return;
    }
    if ((*query)["what"].empty()) (*query)["what"] = "settings";
    context.exit = context.print(context.client().get("/v1/schema", *query),
                                 [&](const auto& answer) { context.out() << json_text(answer) << "\n"; });
  });
}

}  // namespace driftd::cli
