// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <memory>
#include <sstream>

#include "cli/command.hpp"

namespace driftd::cli {
namespace {

/// Returns the items of `redis,k8s`.
std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> out;
  std::istringstream items(list);
  for (std::string item; std::getline(items, item, ',');) {
    if (!item.empty()) out.push_back(item);
  }
  return out;
}

}  // namespace

void add_run(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand("run", "run the agent until SIGTERM");
  auto change_logs = std::make_shared<std::string>();
  command->add_flag("--enable-change-logs{*}", *change_logs,
                    "log the changes that are made (docs/change-log.md): by all providers, or =NAME,…");
  command->callback([&context, change_logs] {
    context.exit = context.hooks.run ? context.hooks.run(context.config, split(*change_logs))
                                     : context.fail(kUsage, "this binary holds no agent; use driftd");
  });
}

}  // namespace driftd::cli
