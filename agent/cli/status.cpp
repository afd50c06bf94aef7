// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <memory>

#include "base/escape.hpp"
#include "cli/command.hpp"

namespace driftd::cli {
namespace {

int probe(const Context& context, const std::string& which) {
  const auto reply = context.client().raw(which == "live" ? "/livez" : "/readyz", nullptr, std::chrono::seconds(5));
  if (!reply) return context.fail(reply.error());
  const bool good = reply->status == 200;
  std::string message = reply->body;
  while (message.ends_with('\n')) message.pop_back();
  if (context.json()) {
    context.out() << json_text(core::Value::Object{{"ok", core::Value(good)}, {"message", message}}) << "\n";
  } else {
    context.out() << printable(message) << "\n";
  }
  return good ? kOk : kFinding;
}

constexpr std::size_t kMaxNote = 400;  // bytes; `driftd backends` and the log show the whole text

/// Returns why a backend cannot be judged completely: its error, its health, or the first incomplete kind. Empty if it
/// can.
std::string whole_note(const core::Value& backend) {
  const std::string error = text(backend, "last_error"), health = text(member(backend, "health"), "reason");
  if (!error.empty() || !health.empty()) return error.empty() ? health : error;
  for (const auto& kind : list(backend, "coverage")) {
    for (const auto& reason : list(kind, "reasons")) {
      if (reason.string() != nullptr) return text(kind, "kind") + ": " + *reason.string();
    }
  }
  return {};
}

std::string short_note(const core::Value& backend) {
  std::string note = whole_note(backend);
  const std::string secret = text(member(backend, "worker"), "secret_fault");
  if (!secret.empty()) note += (note.empty() ? "" : "; ") + secret;
  if (note.size() <= kMaxNote) return note;
  return std::string(front(note, kMaxNote)) + " …";
}

/// Returns the jail state of the first worker whose jail is incomplete. Empty if there is no such worker.
std::string incomplete_jail(const core::Value& status) {
  for (const auto& backend : list(status, "backends")) {
    std::string jail = text(member(backend, "worker"), "jail");
    if (jail.find("no landlock") != std::string::npos || jail.find("no seccomp") != std::string::npos) return jail;
  }
  return {};
}

/// `change log: 12 entries wait, the oldest since …; unix:///…: connection refused`
void show_change_log(const Context& context, const core::Value& log) {
  if (!flag(log, "on")) return;
  const std::string waiting = text(log, "waiting"), refused = text(log, "refused"), dropped = text(log, "dropped");
  std::string line = "change log: " + text(log, "sent") + " sent, " + waiting + " wait";
  if (waiting != "0") line += " since " + when(text(log, "oldest"));
  if (refused != "0" || dropped != "0") line += ", " + refused + " refused, " + dropped + " dropped";
  line += "; " + printable(text(log, "destination")) + ": " + printable(text(log, "state"));
  const bool bad = flag(log, "failing") || refused != "0" || dropped != "0";
  context.out() << painted(line, bad ? Colour::yellow : Colour::none, context.streams.colour) << "\n";
}

void show_status(const Context& context, const core::Value& status) {
  const bool ready = flag(status, "ready");
  context.out() << "agent " << printable(text(status, "name")) << " " << printable(text(status, "version")) << ", "
                << painted(ready ? "ready" : "not ready: " + printable(text(status, "not_ready_reason")),
                           ready ? Colour::green : Colour::yellow, context.streams.colour)
                << ", since " << when(text(status, "started")) << ", backlog " << number(status, "backlog_events")
                << " events\n";
  show_change_log(context, member(status, "change_log"));
  if (const std::string lack = incomplete_jail(status); !lack.empty()) {
    context.out() << painted("workers are not held: " + printable(lack), Colour::yellow, context.streams.colour)
                  << "\n";
  }
  for (const auto& one : list(status, "needs_restart")) {
    const std::string where = text(one, "where"),
                      what = text(one, "setting") + (where.empty() ? "" : " (" + where + ")");
    context.out() << painted("needs a restart: " + printable(what), Colour::yellow, context.streams.colour) << "\n";
  }
  context.out() << "\n";
  Table backends({"BACKEND", "TYPE", "STATE", "HEALTH", "RESOURCES", "DRIFTS", "LAST COMPLETE", "NOTE"});
  for (const auto& backend : list(status, "backends")) {
    const core::Value health = member(backend, "health");
    const std::string drifts = text(backend, "open_drifts");
    backends.add({text(backend, "name"),
                  text(backend, "type"),
                  {text(backend, "state"), colour_of(text(backend, "state"))},
                  {text(health, "state"), colour_of(text(health, "state"))},
                  text(backend, "resources"),
                  {drifts, drifts == "0" ? Colour::none : Colour::yellow},
                  when(text(backend, "last_complete")),
                  short_note(backend)});
  }
  context.print(backends, "no backends");
  context.out() << "\n";
  Table sinks({"SINK", "TYPE", "DELIVERED", "IN FLIGHT", "RETRYING", "DEAD", "STATE"});
  for (const auto& sink : list(status, "sinks")) {
    const std::string dead = text(sink, "dead");
    sinks.add({text(sink, "name"),
               text(sink, "type"),
               text(sink, "delivered"),
               text(sink, "in_flight"),
               text(sink, "retrying"),
               {dead, dead == "0" ? Colour::none : Colour::red},
               text(sink, "state")});
  }
  context.print(sinks, "no sinks");
}

}  // namespace

void add_status(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand("status", "the state of the agent, its backends and its sinks");
  auto which = std::make_shared<std::string>();
  command->add_option("--probe", *which, "live or ready: exit 0 or 1 only")->check(CLI::IsMember({"live", "ready"}));
  command->callback([&context, which] {
    if (!which->empty()) {
      context.exit = probe(context, *which);
      return;
    }
    context.exit =
        context.print(context.client().get("/v1/status"), [&](const auto& answer) { show_status(context, answer); });
  });
}

}  // namespace driftd::cli
