// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "base/clock.hpp"
#include "cli/command.hpp"
#include "cli/show.hpp"
#include "core/drift.hpp"

namespace driftd::cli {
namespace {

/// Returns the changed path for display. For the resource itself, returns what happened to it.
std::string what_changed(const core::Value& drift, const core::Value& change) {
  const std::string path = text(change, "path");
  return path.empty() || path == core::kIdentityPath ? "(" + text(drift, "operation") + ")" : path;
}

/// Returns true if the agent shows only part of a drift.
bool is_cut_short(const core::Value& drift) {
  const auto changes = list(drift, "changes");
  return number(drift, "changes_total") > 0 ||
         std::any_of(changes.begin(), changes.end(),
                     [](const core::Value& change) { return !list(change, "cut").empty(); });
}

void print_cut(const Context& context, const core::Value::Array& drifts) {
  const auto count = std::count_if(drifts.begin(), drifts.end(), is_cut_short);
  if (count == 0) return;
  context.out() << "large values of " << count
                << " drifts are cut: driftd drifts --drift ID -o json shows one of them whole\n";
}

/// Asks again for drifts whose values the agent cut, one by one: what differs in a long list can only be told from the
/// whole values. Those beyond the limit, and those that ended meanwhile, stay as they are.
void fetch_whole(const Context& context, const Query& query, core::Value::Array& drifts) {
  constexpr int kMaxFetched = 20;
  int fetched = 0;
  for (auto& drift : drifts) {
    if (!is_cut_short(drift) || fetched == kMaxFetched) continue;
    ++fetched;
    Query one{{"drift", text(drift, "id")}};
    if (const auto all = query.find("all"); all != query.end()) one.insert(*all);
    const auto answer = context.client().get("/v1/drifts", one);
    if (!answer) {
      context.streams.err << "driftd: drift " << printable(text(drift, "id"))
                          << " is shown cut: " << answer.error().message << "\n";
      continue;
    }
    if (auto found = list(*answer, "drifts"); found.size() == 1) drift = std::move(found.front());
  }
}

/// Returns who looks after a drift. Empty if nobody does any more.
std::string holder_of(const core::Value& drift) {
  const std::string holder = text(drift, "claimed_by"), until = text(drift, "claimed_until");
  const bool ended = until < render_time(SystemClock().wall());  // both in UTC, in one form
  if (holder.empty() || ended) return {};
  return ", claimed by " + printable(holder) + " until " + printable(when(until));
}

std::string approvals_of(const core::Value& drift) {
  const auto needed = number(drift, "approvals_needed");
  if (needed < 2 || text(drift, "status") != "pending") return {};
  return ", approved by " + std::to_string(number(drift, "approvals_given")) + " of " + std::to_string(needed);
}

/// `3f2a9c1d@9b1c  kafka  topic/orders`, and below it class, status and when it was opened.
void print_head(const Context& context, const core::Value& drift) {
  const std::string ref = text(drift, "ref");  // empty if the drift is closed or no agent answered
  const std::string status = text(drift, "status");
  context.out() << painted(printable(ref.empty() ? text(drift, "id") : ref), Colour::bold, context.streams.colour)
                << "  " << printable(text(drift, "backend")) << "  " << printable(text(drift, "resource")) << "\n  "
                << printable(text(drift, "class")) << ", "
                << painted(printable(status), colour_of(status), context.streams.colour)
                << (text(drift, "stale_since").empty() ? "" : " (stale)") << progress_of(drift) << ", opened "
                << printable(when(text(drift, "opened"))) << "\n";
}

/// One side of a change. A value that the agent cut is the beginning of its JSON, as text.
std::optional<core::Value> side(const core::Value& change, std::string_view name) {
  const core::Value* found = change.find(name);
  if (found == nullptr) return std::nullopt;
  return *found;
}

}  // namespace

std::string progress_of(const core::Value& drift) { return approvals_of(drift) + holder_of(drift); }

void print_drifts(const Context& context, const core::Value::Array& drifts) {
  if (drifts.empty()) context.out() << "no drifts\n";
  for (const auto& drift : drifts) {
    print_head(context, drift);
    const auto changes = list(drift, "changes");
    for (const auto& change : changes) {
      const std::string path = what_changed(drift, change);
      context.out() << "  " << painted(printable(path), Colour::bold, context.streams.colour) << "\n";
      show_glance(context, glance(side(change, "old"), side(change, "new"), path, {.width = 72}), 4);
    }
    if (const auto total = number(drift, "changes_total"); total > 0)
      context.out() << "  and " << total - static_cast<std::int64_t>(changes.size()) << " more\n";
    if (changes.empty()) context.out() << "  (" << printable(text(drift, "operation")) << ")\n";
    if (const auto held = member(drift, "held"); held.object() != nullptr)
      context.out() << "  not put back (" << printable(text(held, "reason")) << "): " << printable(text(held, "text"))
                    << "\n";
  }
}

void print_omitted(const Context& context, const core::Value& answer, std::size_t shown) {
  for (const auto& note : list(answer, "notes")) context.streams.err << "driftd: " << printable(text(note)) << "\n";
  const auto total = number(answer, "total");
  if (!flag(answer, "truncated")) return;
  const bool full = text(answer, "limited_by") == "bytes";
  context.out() << total - static_cast<std::int64_t>(shown) << " more of " << total << " are not shown; "
                << (full ? "the answer is full: ask for fewer, by --backend, --kind or --id" : "--limit shows more")
                << "\n";
}

void add_drifts(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand("drifts", "open drifts; exit 1 if there are any");
  auto query = std::make_shared<Query>();
  auto all = std::make_shared<bool>(false), whole = std::make_shared<bool>(false);
  command->add_option("--backend", (*query)["backend"], "name or glob");
  command->add_option("--kind", (*query)["kind"], "kind or glob");
  command->add_option("--id", (*query)["id"], "resource id or glob");
  command->add_option("--drift", (*query)["drift"], "the drift's own id or its beginning; its values are shown whole");
  command->add_option("--status", (*query)["status"], "pending, rejected, ignored, approved …");
  command->add_option("--limit", (*query)["limit"], "maximum number of drifts (default 1000)");
  command->add_flag("--all", *all, "history too");
  command->add_flag("--whole", *whole, "do not cut values of more than 16 KiB");
  command->callback([&context, query, all, whole] {
    if (*whole) (*query)["whole"] = "true";
    if (*all) (*query)["all"] = "true";
    const auto answer = context.client().get("/v1/drifts", *query);
    context.exit = context.print(answer, [&](const auto& value) {
      auto drifts = list(value, "drifts");
      fetch_whole(context, *query, drifts);
      print_drifts(context, drifts);
      print_cut(context, drifts);
      print_omitted(context, value, drifts.size());
    });
    if (answer && !*all && !list(*answer, "drifts").empty()) context.exit = kFinding;
  });
}

}  // namespace driftd::cli
