// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/command.hpp"

namespace driftd::cli {
namespace {

struct EventOptions {
  Query query;
  bool follow = false;
  int count = 0;
};

void show_event(const Context& context, const core::Value& event) {
  if (context.json()) {
    context.out() << json_text(event) << "\n";
    return;
  }
  const core::Value payload = member(event, "event");
  const std::string status = text(payload, "reconciliation_status");
  context.out() << painted(when(text(event, "recorded")), Colour::dim, context.streams.colour) << "  "
                << text(event, "seq") << "  "
                << painted(printable(text(event, "subject")), Colour::bold, context.streams.colour) << "  "
                << printable(text(event, "resource"));
  const auto fields = join(list(payload, "changed_fields"));
  if (!fields.empty()) context.out() << "  " << printable(fields);
  if (!status.empty()) context.out() << "  " << painted(printable(status), colour_of(status), context.streams.colour);
  context.out() << "\n";
}

/// Prints events as they arrive, until `count` were printed (0: without end) or the agent has gone.
int follow(const Context& context, EventOptions options) {
  const Client client = context.client();
  int printed = 0;
  std::string after = options.query["after"];
  for (;;) {
    const auto answer = client.get("/v1/events", options.query);
    if (!answer) return context.fail(answer.error());
    for (const auto& event : list(*answer, "events")) {
      show_event(context, event);
      after = text(event, "seq");
      if (++printed == options.count) return kOk;
    }
    context.out().flush();
    options.query["after"] = after.empty() ? "0" : after;
    options.query["wait"] = "20";
  }
}

int print(const Context& context, const EventOptions& options) {
  const auto answer = context.client().get("/v1/events", options.query);
  if (!answer) return context.fail(answer.error());
  const auto events = list(*answer, "events");
  for (const auto& event : events) show_event(context, event);
  if (text(*answer, "limited_by") != "bytes" || events.empty()) return kOk;
  const bool forward = !options.query.at("after").empty();  // without --after the list ends with the newest event
  context.streams.err << "driftd: the answer is full with " << events.size() << " events; "
                      << (forward ? "the next ones: --after " + text(events.back(), "seq")
                                  : "those before " + text(events.front(), "seq") + ": --after with a smaller number")
                      << "\n";
  return kOk;
}

}  // namespace

void add_events(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand("events", "what happened, oldest first; JSON: one event a line");
  auto options = std::make_shared<EventOptions>();
  command->add_flag("-f,--follow", options->follow, "print further events as they arrive");
  command->add_option("--after", options->query["after"], "only events after this number (seq)");
  command->add_option("--limit", options->query["limit"], "maximum number of events in one request (default 100)");
  command->add_option("--count", options->count, "with --follow: stop after this many events")
      ->check(CLI::PositiveNumber);
  command->callback(
      [&context, options] { context.exit = options->follow ? follow(context, *options) : print(context, *options); });
}

}  // namespace driftd::cli
