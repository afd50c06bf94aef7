// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/command.hpp"

namespace driftd::cli {
namespace {

struct SilenceOptions {
  std::string backend, kind, id, cls, reason;
  std::int64_t seconds = 0;
};

void show(const Context& context, const core::Value& answer) {
  Table table({"ID", "BACKEND", "KIND", "RESOURCE", "CLASS", "UNTIL", "BY", "REASON"});
  const auto any = [](const std::string& glob) { return glob.empty() ? std::string("*") : glob; };
  for (const auto& one : list(answer, "silences")) {
    table.add({text(one, "id"), any(text(one, "backend")), any(text(one, "kind")), any(text(one, "resource_id")),
               any(text(one, "class")), when(text(one, "expires")), text(one, "author"), text(one, "reason")});
  }
  context.print(table, "no silences");
}

int change(const Context& context, const std::string& verb, core::Value::Object body) {
  const auto answer = context.client().post("/v1/silences/" + verb, std::move(body));
  return context.print(answer, [&](const auto& value) {
    const core::Value silence = member(value, "silence");
    context.out() << printable(text(silence, "id")) << (verb == "add" ? "  until " : "  ended ")
                  << printable(when(text(silence, "expires"))) << "\n";
  });
}

void add_add(CLI::App& above, Context& context) {
  auto* command = above.add_subcommand("add", "send no notification about drifts that all of these match");
  auto options = std::make_shared<SilenceOptions>();
  command->add_option("--backend", options->backend, "name or glob");
  command->add_option("--kind", options->kind, "kind or glob");
  command->add_option("--id", options->id, "resource id or glob");
  command->add_option("--class", options->cls, "config, credential, endpoint or glob");
  command->add_option("--reason", options->reason, "why; it is shown and in the audit log")->required();
  command->add_option("--for", options->seconds, "how long, such as 30m, 2h or 1d")
      ->transform(
          CLI::AsNumberWithUnit(std::map<std::string, std::int64_t>{{"s", 1}, {"m", 60}, {"h", 3'600}, {"d", 86'400}}))
      ->check(CLI::PositiveNumber)
      ->required();
  command->callback([&context, options] {
    core::Value::Object body{{"reason", core::Value(options->reason)},
                             {"seconds", core::Value::Number{std::to_string(options->seconds)}}};
    for (const auto& [name, value] : {std::pair{"backend", &options->backend}, std::pair{"kind", &options->kind},
                                      std::pair{"resource_id", &options->id}, std::pair{"class", &options->cls}}) {
      if (!value->empty()) body.emplace(name, core::Value(*value));
    }
    context.exit = change(context, "add", std::move(body));
  });
}

}  // namespace

void add_silence(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand("silence", "drifts about which no notification is sent for a while");
  command->require_subcommand(1);
  add_add(*command, context);
  command->add_subcommand("list", "the silences that hold")->callback([&context] {
    context.exit =
        context.print(context.client().get("/v1/silences"), [&](const auto& answer) { show(context, answer); });
  });
  auto* expire = command->add_subcommand("expire", "end a silence now");
  auto id = std::make_shared<std::string>();
  expire->add_option("ID", *id, "as `driftd silence list` prints it")->required();
  expire->callback([&context, id] {
    context.exit = change(context, "expire", core::Value::Object{{"id", core::Value(*id)}});
  });
}

}  // namespace driftd::cli
