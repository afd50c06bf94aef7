// SPDX-License-Identifier: Apache-2.0
// The key under which secrets are compared: its state and its rotation, without asking the agent.
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/command.hpp"

namespace driftd::cli {
namespace {

void show_state(const Context& context, const core::Value& answer) {
  const std::string named = text(answer, "named");
  context.out() << printable(text(answer, "from")) << (named.empty() ? "" : " for " + printable(named)) << ", mode "
                << text(answer, "mode") << ", of " << printable(text(answer, "owner")) << ", written "
                << text(answer, "written") << "; " << printable(text(answer, "state")) << "\n";
  Table table({"LINK", "ID", "SINCE"});
  for (const auto& link : list(answer, "links")) {
    const std::string since = text(link, "since");
    table.add({text(link, "what"), text(link, "id"), since.empty() ? "the first start" : since});
  }
  context.print(table, "");
}

int show(const Context& context, const std::string& key_file) {
  const auto config = load_offline_config(context, key_file.empty());
  if (!config) return context.fail(config.error());
  if (!context.hooks.key_state) return context.fail(kUsage, "this binary holds no agent; use driftd");
  return finish_offline(context, context.hooks.key_state(*config, key_file),
                        [&](const core::Value& answer) { show_state(context, answer); });
}

void show_next(const Context& context, const core::Value& answer) {
  context.out() << "wrote " << printable(text(answer, "file")) << ": key ids " << text(answer, "ids")
                << "\nnothing has changed yet: keep a copy of it, put it in place of what "
                << printable(text(answer, "put"))
                << " names, and restart the agent; that start rewrites the store under it\n";
}

void show_rotated(const Context& context, const core::Value& answer) {
  if (!text(answer, "put").empty()) return show_next(context, answer);
  context.out()
      << "rotated " << printable(text(answer, "file")) << ": key ids " << text(answer, "ids")
      << "; the store is rewritten under it\nback up both now: the former key does not open this store any more\n";
  if (const std::string unswept = text(answer, "unswept"); !unswept.empty()) {
    context.out() << "store.db and its log still hold digests under the former key in unused pages: "
                  << printable(unswept) << "; the next start overwrites them\n";
  }
  const auto former = list(answer, "former");
  if (former.empty()) return;
  context.out() << "the former key still opens these copies; remove them when you do not need them:\n";
  for (const auto& file : former) context.out() << "  " << printable(*file.string()) << "\n";
}

int rotate(const Context& context, app::KeyRotation asked) {
  const auto config = load_offline_config(context, asked.key_file.empty());
  if (!config) return context.fail(config.error());
  if (!context.hooks.rotate_key) return context.fail(kUsage, "this binary holds no agent; use driftd");
  asked.say = [&context](const std::string& words) { context.streams.err << "driftd: " << words << std::endl; };
  return finish_offline(context, context.hooks.rotate_key(*config, asked),
                        [&](const core::Value& answer) { show_rotated(context, answer); });
}

/// The only command that prints a key. It does so only into a pipe or a file, because a terminal keeps its history.
int make(const Context& context, const std::string& out) {
  if (!context.hooks.new_key) return context.fail(kUsage, "this binary holds no agent; use driftd");
  if (out.empty() && (context.streams.shown || context.json())) {
    return context.fail(kUsage,
                        "a key is not shown; --out FILE writes it to a new file of mode 0600, and without --output "
                        "json it goes to a pipe");
  }
  const auto show = [&](const core::Value& answer) {
    if (!out.empty()) {
      context.out() << "wrote " << printable(out) << ", mode 0600: key ids " << text(answer, "ids") << "\n";
      return;
    }
    context.out() << *answer.find("text")->string() << std::flush;
  };
  const int code = finish_offline(context, context.hooks.new_key(out), show);
  if (code != kOk || context.out()) return code;
  return context.fail(kUnreachable, "the key could not be written to stdout whole; use --out FILE");
}

void add_new_key(CLI::App& key, Context& context) {
  auto* fresh = key.add_subcommand("new", "make a key for agent.installation_key");
  auto out = std::make_shared<std::string>();
  fresh->add_option("--out", *out, "a new file, mode 0600; default: stdout, unless that is a terminal");
  fresh->callback([&context, out] { context.exit = make(context, *out); });
}

}  // namespace

void add_key(CLI::App& app, Context& context) {
  auto* key = app.add_subcommand("key", "the key under which secrets are compared: ids, age and permissions");
  key->require_subcommand(0, 1);
  auto asked = std::make_shared<app::KeyRotation>();
  key->add_option("--key", asked->key_file,
                  "the file of a key that agent.installation_key names, where this process cannot read that");
  auto* again =
      key->add_subcommand("rotate", "add a layer around the key and every stored digest; the agent must not run");
  again->add_option("--reason", asked->reason, "for the audit log");
  again->add_flag(
      "--slow", asked->slow,
      "a layer that makes each guess cost 50 ms and 16 MiB; so does each stored digest that the agent makes");
  again->add_option("--key", asked->key_file, "as above");
  again->add_option("--out", asked->out,
                    "a new file for a key that agent.installation_key names, with its next layer; no store is touched, "
                    "the agent may run");
  again->callback([&context, asked] { context.exit = rotate(context, *asked); });
  add_new_key(*key, context);
  key->callback([&context, key, asked] {
    if (key->get_subcommands().empty()) context.exit = show(context, asked->key_file);
  });
}

}  // namespace driftd::cli
