// SPDX-License-Identifier: Apache-2.0
// `driftd enforce` puts a drift back by hand, switches enforcement, and shows what is held; `driftd operations` lists
// what was done.
#include <CLI/CLI.hpp>
#include <memory>

#include "base/escape.hpp"
#include "cli/command.hpp"

namespace driftd::cli {
namespace {

struct EnforceOptions {
  std::string drift, digest, reason;
  bool dry_run = false;
};

struct OperationOptions {
  std::string backend, about, state;
  int limit = 100;
};

std::string word(const core::Value& json) { return json.string() != nullptr ? *json.string() : json_text(json); }

void show_operation(const Context& context, const core::Value& operation, bool dry_run) {
  auto& out = context.out();
  out << printable(text(operation, "resource")) << "  "
      << (dry_run ? "dry run, nothing was changed" : printable(text(operation, "state"))) << "\n";
  for (const auto& command : list(operation, "commands"))
    out << (dry_run ? "  would run: " : "  ran:  ") << printable(word(command)) << "\n";
  for (const auto& command : list(operation, "undo")) out << "  undo: " << printable(word(command)) << "\n";
  if (const std::string why = text(operation, "text"); !why.empty()) out << "  " << printable(why) << "\n";
}

bool is_done(const core::Value& operation) {
  const std::string state = text(operation, "state");
  return state == "done" || state == "planned" || state == "applying";
}

core::Value reason_body(const std::string& reason) {
  core::Value::Object body;
  if (!reason.empty()) body.emplace("reason", reason);
  return body;
}

int enforce(const Context& context, const EnforceOptions& options) {
  const std::size_t at = options.drift.find('@');
  const std::string id = options.drift.substr(0, at);
  const std::string digest = at == std::string::npos ? options.digest : options.drift.substr(at + 1);
  if (digest.empty()) {
    return context.fail(kUsage,
                        "give the value that you saw, ID@DIGEST as `driftd drifts` prints it: it may have moved since");
  }
  core::Value body = reason_body(options.reason);
  body.object()->emplace("digest", digest);
  if (options.dry_run) body.object()->emplace("dry_run", true);
  const auto answer = context.client().post("/v1/drifts/" + escape(id) + "/enforce", body);
  const int exit = context.print(
      answer, [&](const core::Value& shown) { show_operation(context, member(shown, "operation"), options.dry_run); });
  if (exit != kOk) return exit;
  return is_done(member(*answer, "operation")) ? kOk : kFinding;
}

void show_status(const Context& context, const core::Value& answer) {
  const std::string off = text(answer, "off");
  context.out() << (off.empty() ? "enforcement is on" : "enforcement is OFF: " + printable(off)) << "\n";
  Table backends({"BACKEND", "ALLOWED", "MIN AGE", "PER CYCLE", "PER HOUR", "HELD", "STOPPED"});
  Table held({"DRIFT", "HELD", "WHY"});
  Table stopped({"STOPPED", "SINCE", "WHY"});
  for (const auto& backend : list(answer, "backends")) {
    const core::Value holds = member(backend, "held");
    const std::size_t count = holds.object() == nullptr ? 0 : holds.object()->size();
    backends.add({text(backend, "name"), flag(backend, "allowed") ? "yes" : "no",
                  text(backend, "minimum_age_seconds") + " s", text(backend, "per_cycle"), text(backend, "per_hour"),
                  std::to_string(count), std::to_string(list(backend, "stopped").size())});
    for (const auto& stop : list(backend, "stopped"))
      stopped.add({text(backend, "name") + ": " + text(stop, "resource"), text(stop, "at"), text(stop, "reason")});
    if (holds.object() == nullptr) continue;
    for (const auto& [drift, hold] : *holds.object()) held.add({drift, text(hold, "reason"), text(hold, "text")});
  }
  context.print(backends, "no backends");
  if (!held.empty()) context.print(held, "");
  if (!stopped.empty()) context.print(stopped, "");
}

void show_operations(const Context& context, const core::Value& answer) {
  Table table({"OPERATION", "BACKEND", "RESOURCE", "DRIFT", "STATE", "BY", "PLANNED", "WHY"});
  for (const auto& one : list(answer, "operations")) {
    table.add({text(one, "id"), text(one, "backend"), text(one, "resource"), text(one, "drift"), text(one, "state"),
               text(one, "actor"), text(one, "planned"), text(one, "text")});
  }
  context.print(table, "no operations");
}

void add_switch(CLI::App& enforce, Context& context, const std::string& verb, const std::string& about) {
  auto* command = enforce.add_subcommand(verb, about);
  auto reason = std::make_shared<std::string>();
  command->add_option("--reason", *reason, "kept with the switch and in the audit log");
  command->callback([&context, verb, reason] {
    context.exit = context.print(context.client().post("/v1/enforce/" + verb, reason_body(*reason)),
                                 [&](const auto& answer) { show_status(context, answer); });
  });
}

void add_resume(CLI::App& enforce, Context& context) {
  auto* command = enforce.add_subcommand("resume", "go on with a resource that was stopped, or whose operation failed");
  auto options = std::make_shared<EnforceOptions>();
  command->add_option("DRIFT", options->drift, "id as `driftd drifts` prints it, or its beginning")->required();
  command->add_option("--reason", options->reason, "kept in the audit log");
  command->callback([&context, options] {
    const std::string id = options->drift.substr(0, options->drift.find('@'));
    context.exit =
        context.print(context.client().post("/v1/drifts/" + escape(id) + "/resume", reason_body(options->reason)),
                      [&](const auto& answer) { show_status(context, answer); });
  });
}

}  // namespace

void add_enforce(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand("enforce", "put the known value of a drift back, or switch enforcement");
  command->require_subcommand(0, 1);
  auto options = std::make_shared<EnforceOptions>();
  command->add_option("DRIFT", options->drift, "ID@DIGEST as `driftd drifts` prints it");
  command->add_option("--digest", options->digest, "the digest, if DRIFT has none");
  command->add_option("--reason", options->reason, "kept with the operation");
  command->add_flag("--dry-run", options->dry_run, "only show the exact commands that would run");
  add_switch(*command, context, "off", "stop everything that driftd would put back; holds after a restart");
  add_switch(*command, context, "on", "lift `enforce off`");
  add_resume(*command, context);
  command->add_subcommand("status", "whether enforcement is on, and what is held and why")->callback([&context] {
    context.exit =
        context.print(context.client().get("/v1/enforce"), [&](const auto& answer) { show_status(context, answer); });
  });
  command->callback([&context, options, command] {
    if (!command->get_subcommands().empty()) return;
    context.exit = options->drift.empty() ? context.fail(kUsage, "name a drift, or one of: status, off, on, resume")
                                          : enforce(context, *options);
  });
}

void add_operations(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand("operations", "what driftd put back, the newest first");
  auto options = std::make_shared<OperationOptions>();
  command->add_option("--backend", options->backend, "only of this backend");
  command->add_option("--about", options->about, "only of this drift, or the operation of this id");
  command->add_option("--state", options->state, "only in this state: done, failed, unknown …");
  command->add_option("--limit", options->limit, "maximum number of rows")->check(CLI::PositiveNumber);
  command->callback([&context, options] {
    const Query query{{"backend", options->backend},
                      {"about", options->about},
                      {"state", options->state},
                      {"limit", std::to_string(options->limit)}};
    context.exit = context.print(context.client().get("/v1/operations", query),
                                 [&](const auto& answer) { show_operations(context, answer); });
  });
}

}  // namespace driftd::cli
