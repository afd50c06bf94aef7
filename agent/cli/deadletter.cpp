// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/command.hpp"

namespace driftd::cli {
namespace {

struct DeadLetterOptions {
  std::string sink;
  std::vector<std::int64_t> seqs;
};

void show_dead_letters(const Context& context, const core::Value& answer) {
  Table table({"SINK", "SEQ", "EVENT", "SUBJECT", "ATTEMPTS", "ERROR"});
  for (const auto& letter : list(answer, "dead_letters")) {
    const core::Value event = member(letter, "event");
    table.add({text(letter, "sink"), text(letter, "seq"), text(event, "id"), text(event, "subject"),
               text(letter, "attempts"), text(letter, "error")});
  }
  context.print(table, "no dead letters");
  print_omitted(context, answer, list(answer, "dead_letters").size());
}

int settle(const Context& context, const std::string& verb, const DeadLetterOptions& options) {
  core::Value::Array seqs;
  for (const auto seq : options.seqs) seqs.push_back(core::Value::Number{std::to_string(seq)});
  const auto answer = context.client().post("/v1/deadletters/" + verb,
                                            core::Value::Object{{"sink", core::Value(options.sink)}, {"seqs", seqs}});
  return context.print(answer, [&](const auto& value) {
    context.out() << text(value, "count") << (verb == "drop" ? " dropped\n" : " sent again\n");
  });
}

void add_verb(CLI::App& above, Context& context, const std::string& verb, const std::string& about) {
  auto* command = above.add_subcommand(verb, about);
  auto options = std::make_shared<DeadLetterOptions>();
  command->add_option("--sink", options->sink)->required();
  command->add_option("SEQ", options->seqs, "numbers as `driftd deadletter ls` prints them; none: all");
  command->callback([&context, verb, options] { context.exit = settle(context, verb, *options); });
}

}  // namespace

void add_deadletter(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand("deadletter", "events that a sink refused for good");
  command->require_subcommand(1);
  auto* show_all = command->add_subcommand("ls", "list the dead letters");
  auto query = std::make_shared<Query>();
  show_all->add_option("--sink", (*query)["sink"], "only of this sink");
  show_all->add_option("--limit", (*query)["limit"], "maximum number of events (default 100)");
  show_all->callback([&context, query] {
    context.exit = context.print(context.client().get("/v1/deadletters", *query),
                                 [&](const auto& answer) { show_dead_letters(context, answer); });
  });
  add_verb(*command, context, "replay", "send dead letters again");
  add_verb(*command, context, "drop", "give dead letters up: they are never sent");
}

}  // namespace driftd::cli
