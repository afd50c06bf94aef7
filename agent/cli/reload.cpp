// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>

#include "cli/command.hpp"

namespace driftd::cli {

void add_reload(CLI::App& app, Context& context) {
  app.add_subcommand("reload", "read policies, ignores, expectations and routes again, whole or not at all")
      ->callback([&context] {
        context.exit = context.print(context.client().post("/v1/reload", core::Value::Object{}),
                                     [&](const auto&) { context.out() << "reloaded\n"; });
      });
}

}  // namespace driftd::cli
