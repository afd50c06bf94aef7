// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>

#include "cli/command.hpp"

namespace driftd::cli {
namespace {

std::string claim_of(const core::Value& note) {
  const std::string holder = text(note, "claimed_by");
  return holder.empty() ? "" : holder + " until " + when(text(note, "claimed_until"));
}

void show_notifications(const Context& context, const core::Value& answer) {
  Table table({"DRIFT", "TITLE", "RESOURCE", "ACTIONS", "APPROVALS", "CLAIMED BY"});
  for (const auto& note : list(answer, "notifications")) {
    std::string actions;
    for (const auto& action : list(note, "actions")) {
      if (action.string() != nullptr) actions += (actions.empty() ? "" : " ") + *action.string();
    }
    table.add({text(note, "ref"), text(note, "title"), text(note, "resource"), actions, text(note, "approvals"),
               claim_of(note)});
  }
  context.print(table, "nothing waits for a decision");
  const auto total = number(answer, "notifications_total"),
             shown = static_cast<std::int64_t>(list(answer, "notifications").size());
  if (total <= shown) return;
  context.out() << total - shown << " more of " << total
                << " are not shown: driftd drifts --status pending --limit 10000\n";
}

void show_queue(const Context& context, const core::Value& answer) {
  show_notifications(context, answer);
  Table table({"SINK", "EMITTED", "ACKED", "PENDING", "DEAD", "DROPPED"});
  for (const auto& totals : list(answer, "books")) {
    const std::string dead = text(totals, "dead");
    table.add({text(totals, "sink"),
               text(totals, "emitted"),
               text(totals, "acked"),
               text(totals, "pending"),
               {dead, dead == "0" ? Colour::none : Colour::red},
               text(totals, "dropped")});
  }
  context.print(table, "no sinks");
  context.out() << "backlog: " << text(answer, "backlog_events") << " events, " << text(answer, "backlog_bytes")
                << " bytes\n";
}

}  // namespace

void add_queue(CLI::App& app, Context& context) {
  app.add_subcommand("queue", "what waits for a decision, and what each sink got, waits for and lost")
      ->callback([&context] {
        context.exit =
            context.print(context.client().get("/v1/queue"), [&](const auto& answer) { show_queue(context, answer); });
      });
}

}  // namespace driftd::cli
