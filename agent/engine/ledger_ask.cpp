// SPDX-License-Identifier: Apache-2.0
// Questions to the provider before judging: converting old baselines, and its own verdicts on changes.
#include "engine/ledger.hpp"

namespace driftd::engine {
namespace {

/// Compares two stored bodies. Runs on the diff pool.
Result<core::Difference> diff_stored(const std::string& before, const std::string& after,
                                     const core::KindSchema& schema, const core::DiffOptions& options) {
  DRIFTD_TRY(const auto left, core::parse(before));
  DRIFTD_TRY(const auto right, core::parse(after));
  return core::diff(left, right, schema, options);
}

}  // namespace

Task<Status> Ledger::ask_upgrades(const std::vector<core::StoredResource>& stored,
                                  std::vector<ResourceReading>& readings, core::Session* session) {
  if (session == nullptr || !info_ || !info_->offers("driftd.upgrade")) co_return Status{};
  for (std::size_t i = 0; i < stored.size(); ++i) {
    const core::StoredResource& row = stored[i];
    auto* seen = std::get_if<core::Present>(&readings[i].outcome);
    if (seen == nullptr || !row.baseline || row.schema_revision >= schema(row.id.kind)->revision()) continue;
    auto body = co_await session->upgrade(row.id.kind, row.schema_revision, *row.baseline);
    if (body) {
      readings[i].upgraded = std::move(*body);
    } else if (body.error().code != Code::unsupported) {  // a new baseline would hide a drift
      const Nanos at = seen->observation.observed_ns;
      readings[i].outcome = core::Unknown{"the provider cannot convert its baseline of schema revision " +
                                              std::to_string(row.schema_revision) + ": " + body.error().message,
                                          at};
    }
  }
  co_return Status{};
}

Task<Status> Ledger::ask_demotions(const std::vector<core::StoredResource>& stored,
                                   std::vector<ResourceReading>& readings, core::Session* session) {
  if (session == nullptr || !info_ || !info_->has_diff) co_return Status{};
  for (std::size_t i = 0; i < stored.size(); ++i) {
    auto* seen = std::get_if<core::Present>(&readings[i].outcome);
    if (seen == nullptr || !stored[i].baseline) continue;
    core::DiffOptions options;
    options.old_revision = stored[i].schema_revision;
    options.unread = seen->observation.unread;
    options.id = readings[i].id;
    options.keys = context_->keys.get();
    auto work = [before = readings[i].upgraded.value_or(*stored[i].baseline), after = seen->observation.body,
                 schema_of = schema(readings[i].id.kind), options,
                 keys = context_->keys] { return diff_stored(before, after, *schema_of, options); };
    DRIFTD_CO_TRY(const core::Difference difference, co_await run_on(context_->diff, std::move(work)));
    if (difference.changes.empty()) continue;
    const auto demotions = co_await session->demote(readings[i].id, difference.changes);
    // It can only demote changes. While it fails, no change is reported yet, and the next cycle asks again.
    if (!demotions) {
      for (const auto& change : difference.changes) {
        seen->demoted.push_back({change.path, true, "the provider's diff failed: " + demotions.error().message});
      }
      continue;
    }
    for (const auto& demotion : *demotions) {
      if (demotion.index >= difference.changes.size()) continue;
      seen->demoted.push_back({difference.changes[demotion.index].path, demotion.unsettled, demotion.reason});
    }
  }
  co_return Status{};
}

}  // namespace driftd::engine
