// SPDX-License-Identifier: Apache-2.0
// The key under which secrets are compared: what it is, and its rotation, without asking the agent.
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/command.hpp"

namespace driftd::cli {
namespace {

void show_state(const Context& context, const core::Value& answer) {
  context.out() << printable(text(answer, "from")) << ", mode " << text(answer, "mode") << ", of " << printable(text(answer, "owner"))
                << ", written " << text(answer, "written") << "; " << printable(text(answer, "state")) << "\n";
  Table table({"LINK", "ID", "SINCE"});
  for (const auto& link : list(answer, "links")) {
    const std::string since = text(link, "since");
    table.add({text(link, "what"), text(link, "id"), since.empty() ? "the first start" : since});
  }
  context.print(table, "");
}

int show(const Context& context) {
  const auto config = config_beside_agent(context);
  if (!config) return context.fail(config.error());
  if (!context.hooks.key_state) return context.fail(kUsage, "this binary holds no agent; use driftd");
  return finish_offline(context, context.hooks.key_state(*config), [&](const core::Value& answer) { show_state(context, answer); });
}

void show_rotated(const Context& context, const core::Value& answer) {
  context.out() << "rotated " << printable(text(answer, "file")) << ": key ids " << text(answer, "ids")
                << "; the store is rewritten under it\nback up both now: the former key does not open this store any more\n";
  if (const std::string unswept = text(answer, "unswept"); !unswept.empty()) {
    context.out() << "store.db and its log still hold digests under the former key in unused pages: " << printable(unswept)
                  << "; the next start overwrites them\n";
  }
  const auto former = list(answer, "former");
  if (former.empty()) return;
  context.out() << "the former key still opens these copies; remove them when you do not need them:\n";
  for (const auto& file : former) context.out() << "  " << printable(*file.string()) << "\n";
}

int rotate(const Context& context, const std::string& reason) {
  const auto config = config_beside_agent(context);
  if (!config) return context.fail(config.error());
  if (!context.hooks.rotate_key) return context.fail(kUsage, "this binary holds no agent; use driftd");
  return finish_offline(context, context.hooks.rotate_key(*config, reason), [&](const core::Value& answer) { show_rotated(context, answer); });
}

}  // namespace

void add_key(CLI::App& app, Context& context) {
  auto* key = app.add_subcommand("key", "the key under which secrets are compared: ids, age and rights");
  key->require_subcommand(0, 1);
  auto* again = key->add_subcommand("rotate", "put a next layer around the key and every stored digest; the agent must not run");
  auto reason = std::make_shared<std::string>();
  again->add_option("--reason", *reason, "for the audit log");
  again->callback([&context, reason] { context.exit = rotate(context, *reason); });
  key->callback([&context, key] {
    if (key->get_subcommands().empty()) context.exit = show(context);
  });
}

}  // namespace driftd::cli
