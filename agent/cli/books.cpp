// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "base/escape.hpp"
#include "cli/command.hpp"

namespace driftd::cli {
namespace {

/// What one side of an equation has more than the other, and why that is no mistake yet.
struct Balance {
  std::int64_t difference = 0;   ///< not 0: the books are wrong
  std::int64_t in_progress = 0;  ///< counted as such: pending events of a sink, events in a commit
  bool exact() const { return difference == 0 && in_progress == 0; }
};

std::int64_t sum_of(const core::Value& counts) {
  std::int64_t out = 0;
  for (const auto& [name, count] : *counts.object()) out += number(counts, name);
  return out;
}

/// observed = emitted + suppressed, since the agent's start. What is neither must be in a commit, otherwise it is lost;
/// a commit that failed is judged again.
Balance balance_of_judged(const core::Value& judged) {
  const core::Value suppressed = member(judged, "suppressed");
  const std::int64_t accounted = number(judged, "emitted") + number(judged, "withdrawn") +
                                 (suppressed.object() == nullptr ? 0 : sum_of(suppressed));
  const std::int64_t left = number(judged, "observed") - accounted;
  if (left < 0) return {left, 0};
  const std::int64_t in_commit = std::min(left, number(judged, "in_commit"));
  return {left - in_commit, in_commit};
}

/// emitted = acked + pending + dead + dropped, since the installation, and dropped is the sum of its reasons.
Balance balance_of_sink(const core::Value& totals) {
  const std::int64_t dropped = number(totals, "dropped");
  const std::int64_t accounted = number(totals, "acked") + number(totals, "pending") + number(totals, "dead") + dropped;
  const std::int64_t difference = number(totals, "emitted") - accounted;
  const std::int64_t without_reason = dropped - sum_of(member(totals, "dropped_by"));
  return {difference != 0 ? difference : without_reason, number(totals, "pending")};
}

/// Returns ` (dead_letter 1, retention 3)`. Empty if there are no reasons.
std::string render_reasons(const core::Value& counts) {
  std::string out;
  for (const auto& [reason, count] : *counts.object())
    out += (out.empty() ? " (" : ", ") + printable(reason) + " " + text(count);
  return out + (out.empty() ? "" : ")");
}

std::string render(const Balance& balance, const char* in_progress) {
  if (balance.difference != 0) return "WRONG by " + std::to_string(balance.difference);
  if (balance.in_progress == 0) return "exact";
  return std::to_string(balance.in_progress) + in_progress;
}

core::Value json_of(const core::Value& counts, const Balance& balance) {
  core::Value::Object out = *counts.object();
  out["difference"] = core::Value::Number{std::to_string(balance.difference)};
  out["in_progress"] = core::Value::Number{std::to_string(balance.in_progress)};
  return core::Value(std::move(out));
}

struct Books {
  core::Value judged;
  core::Value::Array sinks;

  std::vector<Balance> balances() const {
    std::vector<Balance> out = {balance_of_judged(judged)};
    for (const auto& totals : sinks) out.push_back(balance_of_sink(totals));
    return out;
  }
  /// Returns false for the answer of an older agent.
  bool complete() const {
    const auto has_reasons = [](const core::Value& totals) { return member(totals, "dropped_by").object() != nullptr; };
    return judged.object() != nullptr && judged.object()->count("in_commit") != 0 &&
           member(judged, "suppressed").object() != nullptr && std::all_of(sinks.begin(), sinks.end(), has_reasons);
  }
};

void show_judged(const Context& context, const core::Value& judged) {
  const core::Value suppressed = member(judged, "suppressed");
  const Balance balance = balance_of_judged(judged);
  context.out() << "judged since the agent's start: " << number(judged, "observed")
                << " observed = " << number(judged, "emitted") << " emitted + " << sum_of(suppressed) << " suppressed"
                << render_reasons(suppressed);
  if (const auto again = number(judged, "withdrawn"); again != 0) context.out() << " + " << again << " to judge again";
  context.out() << ": "
                << painted(render(balance, " in a commit"), balance.difference == 0 ? Colour::none : Colour::red,
                           context.streams.colour)
                << "\n\n";
}

void show(const Context& context, const Books& books) {
  show_judged(context, books.judged);
  Table table({"SINK", "EMITTED", "ACKED", "PENDING", "DEAD", "DROPPED", "BALANCE"});
  for (const auto& totals : books.sinks) {
    const Balance balance = balance_of_sink(totals);
    table.add({text(totals, "sink"),
               text(totals, "emitted"),
               text(totals, "acked"),
               text(totals, "pending"),
               text(totals, "dead"),
               text(totals, "dropped") + render_reasons(member(totals, "dropped_by")),
               {render(balance, " pending"), balance.difference == 0 ? Colour::none : Colour::red}});
  }
  context.print(table, "no sinks");
}

void show_json(const Context& context, const Books& books, bool exact, bool wrong) {
  core::Value::Array sinks;
  for (const auto& totals : books.sinks) sinks.push_back(json_of(totals, balance_of_sink(totals)));
  context.out() << json_text(core::Value::Object{{"exact", core::Value(exact)},
                                                 {"wrong", core::Value(wrong)},
                                                 {"judged", json_of(books.judged, balance_of_judged(books.judged))},
                                                 {"sinks", core::Value(std::move(sinks))}})
                << "\n";
}

int close_books(const Context& context, bool json) {
  const auto answer = context.client().get("/v1/queue");
  if (!answer) return context.fail(answer.error());
  const Books books{member(*answer, "judged"), list(*answer, "books")};
  if (!books.complete()) {
    return context.fail(kUsage, "the agent's answer has no totals of what it judged: is it an older agent? restart it");
  }
  const auto balances = books.balances();
  const bool exact = std::all_of(balances.begin(), balances.end(), [](const auto& one) { return one.exact(); });
  const bool wrong = std::any_of(balances.begin(), balances.end(), [](const auto& one) { return one.difference != 0; });
  if (json || context.json()) {
    show_json(context, books, exact, wrong);
  } else {
    show(context, books);
    context.out() << "\n"
                  << (wrong   ? "WRONG: this is a defect of driftd, please report it"
                      : exact ? "exact"
                              : "in progress")
                  << "\n";
  }
  return wrong ? kFinding : kOk;
}

}  // namespace

void add_books(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand("books", "whether every event is accounted for: exact, in progress, or wrong");
  auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "the same as --output json");
  command->callback([&context, json] { context.exit = close_books(context, *json); });
}

}  // namespace driftd::cli
