// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>

#include "cli/command.hpp"

namespace driftd::cli {

void add_run(CLI::App& app, Context& context) {
  app.add_subcommand("run", "run the agent until SIGTERM")->callback([&context] {
    context.exit = context.hooks.run ? context.hooks.run(context.config)
                                     : context.fail(kUsage, "this binary holds no agent; use driftd");
  });
}

}  // namespace driftd::cli
