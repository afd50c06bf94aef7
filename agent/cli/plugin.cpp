// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/command.hpp"

namespace driftd::cli {
namespace {

std::string base_name(const std::string& file) { return file.substr(file.rfind('/') + 1); }

/// `emit 3, secret 1`
std::string counts(const core::Value& object, std::string_view name) {
  const core::Value value = member(object, name);
  std::string out;
  if (value.object() == nullptr) return out;
  for (const auto& [key, count] : *value.object()) out += (out.empty() ? "" : ", ") + key + " " + text(count);
  return out;
}

void append(std::string& to, const std::string& sentence) {
  if (!sentence.empty()) to += (to.empty() ? "" : "; ") + sentence;
}

/// Returns what an operator must know about one worker, the worst first.
std::string reason(const core::Value& worker) {
  std::string out;
  const std::string until = text(worker, "parked_until");
  if (!until.empty()) append(out, "parked until " + when(until));
  append(out, text(worker, "last_exit"));
  append(out, text(worker, "upgrade_refused"));
  if (number(worker, "denied_secrets") > 0) {
    append(out, "asked " + text(worker, "denied_secrets") + " times for secrets that are not its own");
  }
  if (const std::string misuses = counts(worker, "misuses"); !misuses.empty()) {
    append(out, "broke rules: " + misuses + " (last: " + text(worker, "last_misuse") + ")");
  }
  if (const std::string hits = counts(worker, "budget_hits"); !hits.empty()) {
    append(out, "exceeded budgets: " + hits + " (last: " + text(worker, "last_budget_hit") + ")");
  }
  append(out, text(worker, "last_failure"));
  return out;
}

/// Returns what is wrong with the plugin's file. Empty if nothing is.
std::string file_error(const core::Value& plugin) {
  std::string out = text(plugin, "error");
  if (flag(plugin, "gone")) append(out, "the file was removed; workers that run it go on until they end");
  return out;
}

std::string name_of(const core::Value& plugin) {
  const std::string id = text(plugin, "id");
  return id.empty() ? base_name(text(plugin, "file")) : id;
}

void add_rows(const core::Value& plugin, Table& table) {
  const std::string wrong = file_error(plugin), pin = text(plugin, "pin");
  const auto uses = list(plugin, "used_by");
  const std::string own_state = wrong.empty() ? "ok" : flag(plugin, "gone") ? "gone" : "refused";
  if (uses.empty()) {
    table.add({name_of(plugin),
               text(plugin, "version"),
               pin,
               "",
               {own_state, wrong.empty() ? Colour::none : Colour::red},
               "",
               "",
               "",
               text(plugin, "file"),
               {wrong, Colour::red}});
  }
  for (const auto& use : uses) {
    const core::Value worker = member(use, "worker");
    const std::string state = text(worker, "state"), pid = text(worker, "pid");
    std::string why = reason(worker);
    append(why, wrong);
    table.add({name_of(plugin),
               text(worker, "version"),
               pin,
               text(use, "backend"),
               {state, colour_of(state)},
               pid == "0" ? "" : pid,
               text(worker, "restarts"),
               text(worker, "crashes"),
               text(plugin, "file"),
               {why, Colour::red}});
  }
}

void show_plugins(const Context& context, const core::Value& answer) {
  Table table({"PLUGIN", "VERSION", "PIN", "BACKEND", "STATE", "PID", "RESTARTS", "CRASHES", "FILE", "REASON"});
  for (const auto& plugin : list(answer, "plugins")) add_rows(plugin, table);
  for (const auto& missing : list(answer, "missing")) {
    table.add({text(missing, "provider"),
               "",
               "",
               text(missing, "backend"),
               {"no plugin", Colour::red},
               "",
               "",
               "",
               "",
               {text(missing, "reason"), Colour::red}});
  }
  context.print(table, "no plugins found; see agent.plugin_dirs");
}

void add_ls(CLI::App& plugin, Context& context) {
  plugin
      .add_subcommand("ls",
                      "the plugins that the agent found and the state of their workers, also those that do not load")
      ->callback([&context] {
        context.exit = context.print(context.client().get("/v1/plugins"),
                                     [&](const auto& answer) { show_plugins(context, answer); });
      });
}

void show_resumed(const Context& context, const core::Value& answer) {
  for (const auto& backend : list(answer, "resumed")) context.out() << text(backend) << ": freed, its worker starts\n";
}

void add_resume(CLI::App& plugin, Context& context) {
  auto* command = plugin.add_subcommand("resume", "start workers at once that were parked after too many crashes");
  auto name = std::make_shared<std::string>();
  auto why = std::make_shared<std::string>();
  command->add_option("NAME", *name, "a backend, or a plugin: all its backends")->required();
  command->add_option("--reason", *why, "goes into the audit log");
  command->callback([&context, name, why] {
    const core::Value body = core::Value::Object{{"name", *name}, {"reason", *why}};
    context.exit = context.print(context.client().post("/v1/plugins/resume", body),
                                 [&](const auto& answer) { show_resumed(context, answer); });
  });
}

}  // namespace

void add_plugin(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand("plugin", "provider plugins: what is installed, its workers, pins, checks");
  command->require_subcommand(1);
  add_ls(*command, context);
  add_plugin_describe(*command, context);
  add_resume(*command, context);
  add_plugin_files(*command, context);
}

}  // namespace driftd::cli
