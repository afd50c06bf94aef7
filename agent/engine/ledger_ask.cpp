// SPDX-License-Identifier: Apache-2.0
// Questions to the provider before judging: converting old baselines, and its own verdicts on changes.
#include "core/ports/session.hpp"
#include "engine/context.hpp"
#include "engine/ledger_page.hpp"

namespace driftd::engine {
namespace {

/// What is compared: a page's resources, as stored and as read. They are moved there and back, because a page may be
/// large.
struct Comparison {
  std::vector<core::StoredResource> stored;
  std::vector<ResourceReading> readings;
  std::vector<std::shared_ptr<const core::KindSchema>> schemas;
  std::shared_ptr<const core::RedactionKeys> keys;
  std::vector<core::Difference> differences;  ///< the result; empty for what has no baseline or was not read
};

/// Compares a resource with its baseline.
Result<core::Difference> compare_one(const core::StoredResource& stored, const ResourceReading& reading,
                                     const core::KindSchema& schema, const core::RedactionKeys* keys) {
  const auto* seen = std::get_if<core::Present>(&reading.outcome);
  if (seen == nullptr || !stored.baseline) return core::Difference{};
  DRIFTD_TRY(const auto left, core::parse(reading.upgraded ? *reading.upgraded : *stored.baseline));
  DRIFTD_TRY(const auto right, core::parse(seen->observation.body));
  core::DiffOptions options;
  options.old_revision = stored.schema_revision;
  options.unread = seen->observation.unread;
  options.id = reading.id;
  options.keys = keys;
  return core::diff(left, right, schema, options);
}

/// Runs on the diff pool.
Result<Comparison> compare(Comparison all) {
  for (std::size_t i = 0; i < all.stored.size(); ++i) {
    DRIFTD_TRY(auto found, compare_one(all.stored[i], all.readings[i], *all.schemas[i], all.keys.get()));
    all.differences.push_back(std::move(found));
  }
  return all;
}

}  // namespace

Task<Status> Ledger::Page::ask_provider(core::Session* session) {
  const auto& info = ledger_.info_;
  answered_ = readings_;
  if (session == nullptr || !info) co_return Status{};
  if (info->offers("driftd.upgrade")) DRIFTD_CO_CHECK(co_await ask_upgrades(*session));
  if (info->has_diff) DRIFTD_CO_CHECK(co_await ask_demotions(*session));
  co_return Status{};
}

Task<Status> Ledger::Page::ask_upgrades(core::Session& session) {
  for (std::size_t i = 0; i < stored_.size(); ++i) {
    const core::StoredResource& row = stored_[i];
    ResourceReading& reading = answered_[i];
    auto* seen = std::get_if<core::Present>(&reading.outcome);
    if (seen == nullptr || !row.baseline || row.schema_revision >= ledger_.schema(row.id.kind)->revision()) continue;
    auto body = co_await session.upgrade(row.id.kind, row.schema_revision, *row.baseline);
    if (body) {
      reading.upgraded = std::move(*body);
    } else if (body.error().code != Code::unsupported) {  // a new baseline would hide a drift
      const Nanos at = seen->observation.observed_ns;
      reading.outcome = core::Unknown{"the provider cannot convert its baseline of schema revision " +
                                          std::to_string(row.schema_revision) + ": " + body.error().message,
                                      at};
    }
  }
  co_return Status{};
}

/// All resources are compared in one job of the diff pool. Then the provider is asked about each that differs.
Task<Status> Ledger::Page::ask_demotions(core::Session& session) {
  Comparison all;
  for (const auto& reading : answered_) all.schemas.push_back(ledger_.schema(reading.id.kind));
  all.stored = std::move(stored_);
  all.readings = std::move(answered_);
  all.keys = ledger_.context_->keys;
  auto work = [all = std::move(all)]() mutable { return compare(std::move(all)); };
  DRIFTD_CO_TRY(Comparison compared, co_await run_on(ledger_.context_->diff, std::move(work)));
  stored_ = std::move(compared.stored);
  answered_ = std::move(compared.readings);
  for (std::size_t i = 0; i < stored_.size(); ++i) {
    const auto& changes = compared.differences[i].changes;
    if (changes.empty()) continue;
    const auto demotions = co_await session.demote(answered_[i].id, changes);
    auto& demoted = std::get<core::Present>(answered_[i].outcome).demoted;
    // It can only demote changes. While it fails, no change is reported yet, and the next cycle asks again.
    if (!demotions) {
      for (const auto& change : changes) {
        demoted.push_back({change.path, true, "the provider's diff failed: " + demotions.error().message});
      }
      continue;
    }
    for (const auto& demotion : *demotions) {
      if (demotion.index >= changes.size()) continue;
      demoted.push_back({changes[demotion.index].path, demotion.unsettled, demotion.reason});
    }
  }
  co_return Status{};
}

}  // namespace driftd::engine
