// SPDX-License-Identifier: Apache-2.0
// How a page is judged: load → ask the provider → judge → commit.
#include <algorithm>

#include "core/judge/upgrade.hpp"
#include "engine/context.hpp"
#include "engine/decision_binding.hpp"
#include "engine/ledger_page.hpp"
#include "engine/record_versions.hpp"

namespace driftd::engine {
namespace {

constexpr int kApplyTries = 8;  // a decision between load and commit is rare; eight in a row are a bug

core::Judgement drop(const core::StoredResource& stored) {
  core::Judgement out;
  out.next = stored;
  out.dropped = true;
  return out;
}

/// Judges a sealed reading. Runs on the diff pool.
core::Judgement judge_one(const core::JudgeContext& context, const core::StoredResource& stored,
                          const ResourceReading& reading) {
  const auto* seen = std::get_if<core::Present>(&reading.outcome);
  if (seen != nullptr && reading.upgraded) return core::judge_upgraded(context, stored, *seen, *reading.upgraded);
  return core::judge(context, stored, reading.outcome);
}

/// Returns true if the provider failed to judge a change or to convert the baseline. Then it is asked again.
bool is_unsettled(const core::Judgement& judgement) {
  const auto whole = [](const core::UnknownPath& unknown) { return unknown.path.empty(); };
  return judgement.suppressed.contains("unsettled") ||
         std::any_of(judgement.unknown.begin(), judgement.unknown.end(), whole);
}

}  // namespace

Task<Result<Ledger::ApplyResult>> Ledger::apply(std::vector<ResourceReading> readings, CommitExtras extras,
                                                bool applied_state, std::uint32_t run, core::Session* session) {
  Page page(*this, std::move(readings), std::move(extras));
  DRIFTD_CO_CHECK(co_await page.seal());
  for (int attempt = 0; attempt < kApplyTries; ++attempt) {
    DRIFTD_CO_CHECK(co_await page.load());
    DRIFTD_CO_CHECK(co_await page.ask_provider(session));
    DRIFTD_CO_CHECK(co_await page.judge(applied_state));
    auto applied = co_await page.commit(run);
    if (applied || applied.error().code != Code::conflict) co_return applied;
  }
  co_return fail(Code::conflict, "backend " + spec_.name + ": a page met a newer revision " +
                                     std::to_string(kApplyTries) + " times; it is judged again in the next cycle");
}

Ledger::Page::Page(Ledger& ledger, std::vector<ResourceReading> readings, CommitExtras extras)
    : ledger_(ledger),
      readings_(std::move(readings)),
      extras_(std::move(extras)),
      given_enforcements_(extras_.enforcements),
      given_audit_(extras_.audit.size()) {
  for (const auto& reading : readings_) {
    ids_.push_back(reading.id);
    outdated_.push_back(is_outdated(reading));
    if (!outdated_.back()) continue;
    extras_.cursor.reset();  // a cursor stands for every record of its page
    extras_.watch_cursor.reset();
  }
}

/// Returns true if a newer reading was applied already (semantics 8). By the monotonic clock, so that setting back the
/// wall clock makes nothing older.
bool Ledger::Page::is_outdated(const ResourceReading& reading) const {
  const Index::Entry* known = ledger_.index_.find(reading.id);
  const std::uint64_t applied = known != nullptr ? std::uint64_t{known->asked} : ledger_.index_.forgotten_asked();
  return Index::ticks(reading.asked) < applied;
}

Task<Status> Ledger::Page::load() {
  stored_.clear();
  if (ids_.empty()) co_return Status{};
  DRIFTD_CO_TRY(stored_, co_await ledger_.context_->store.load(ledger_.row_.uid, ids_));
  note_restore();
  for (std::size_t i = 0; i < stored_.size(); ++i) update_version(readings_[i], stored_[i]);
  co_return Status{};
}

void Ledger::Page::note_restore() {
  for (std::size_t i = 0; i < stored_.size(); ++i) {
    const auto* seen = std::get_if<core::Present>(&readings_[i].outcome);
    if (seen == nullptr || outdated_[i] || !ledger_.schema(ids_[i].kind)->versioned()) continue;
    if (!went_back(stored_[i], seen->observation)) continue;
    if (!extras_.row) extras_.row = ledger_.row_;
    distrust_versions(*extras_.row, seen->observation.observed_ns);
    ledger_.index_.forget_versions();
  }
}

/// The version of a row is that of its last change, and that of the last record, if one is noted, counts. Clears it if
/// it says nothing about this reading.
void Ledger::Page::update_version(const ResourceReading& reading, core::StoredResource& row) const {
  const auto* seen = std::get_if<core::Present>(&reading.outcome);
  if (seen == nullptr || row.version.empty()) return;
  const std::string& version = seen->observation.version;
  const std::optional<bool> last = ledger_.index_.has_version(row.id, version);
  const bool comparable = row.observed_ns >= versions_since(extras_.row ? *extras_.row : ledger_.row_);
  if (last.value_or(false))
    row.version = version;
  else if (last ? row.version == version : !comparable)
    row.version.clear();
}

Task<Result<std::vector<core::JudgeContext>>> Ledger::Page::contexts(bool applied_state) const {
  std::vector<core::JudgeContext> out;
  for (const auto& id : ids_) {
    out.push_back(ledger_.judge_context(id.kind, applied_state));
    if (const std::string* by = ledger_.accepted_by(id)) out.back().deletions_accepted_by = *by;
    out.back().own_write = ledger_.enforcements_.own_write(id);
  }
  DRIFTD_CO_CHECK(co_await add_declared(out));
  co_return out;
}

/// All readings are judged in one job of the diff pool.
Task<Status> Ledger::Page::judge(bool applied_state) {
  DRIFTD_CO_TRY(auto contexts_of_all, co_await contexts(applied_state));
  auto work = [stored = std::move(stored_), answered = std::move(answered_), contexts = std::move(contexts_of_all),
               outdated = outdated_]() mutable {
    std::vector<JudgedResource> out;
    for (std::size_t i = 0; i < stored.size(); ++i) {
      core::Judgement judged = drop(stored[i]);
      if (!outdated[i]) judged = judge_one(contexts[i], stored[i], answered[i]);
      out.push_back({std::move(stored[i]), std::move(judged)});
    }
    return out;
  };
  judged_ = co_await run_on(ledger_.context_->diff, std::move(work));
  co_return Status{};
}

Ledger::ApplyResult Ledger::Page::summary() const {
  ApplyResult out;
  out.dropped = static_cast<std::size_t>(std::count(outdated_.begin(), outdated_.end(), true));
  for (const auto& one : judged_) {
    out.unsettled += is_unsettled(one.judgement) ? 1 : 0;
    out.transitions += one.judgement.transitions.size();
    if (!one.judgement.unknown.empty()) out.unknown[one.before.id] = one.judgement.unknown;
  }
  return out;
}

/// A drift that ended as enforced ends its operation in the same commit.
void Ledger::Page::note_enforced() {
  extras_.enforcements = given_enforcements_;
  extras_.audit.resize(given_audit_);
  const Nanos now = ledger_.context_->clock.wall();
  for (const auto& one : judged_) {
    for (const auto& transition : one.judgement.transitions) {
      if (transition.drift.status != core::DriftStatus::enforced) continue;
      const core::Enforcement* open = ledger_.enforcements_.find_open(one.before.id);
      if (open == nullptr || open->drift_id != transition.drift.id) continue;
      core::Enforcement done = core::advanced(*open, core::EnforcementState::done, {}, now);
      extras_.audit.push_back(enforcement_entry(ledger_.context_->store_key, done));
      extras_.enforcements.push_back(std::move(done));
    }
  }
}

Task<Result<Ledger::ApplyResult>> Ledger::Page::commit(std::uint32_t run) {
  core::Metrics& metrics = ledger_.context_->metrics;
  const std::string& name = ledger_.spec_.name;
  ApplyResult applied = summary();
  for (const auto& one : judged_) {
    for (const auto& [reason, count] : one.judgement.suppressed) metrics.suppressed(name, reason, count);
  }
  if (applied.unsettled > 0) {
    extras_.cursor.reset();
    ledger_.row_.cursor.clear();
  }
  note_enforced();
  core::PageCommit commit = ledger_.to_page_commit(judged_, extras_, {});
  applied.written = commit.writes.size();
  if (!commit.writes.empty() || !extras_.empty()) {
    DRIFTD_CO_TRY(const auto committed, co_await ledger_.store(std::move(commit)));
    if (!committed.events.empty()) ledger_.context_->committed();
  }
  for (std::size_t i = 0; i < judged_.size(); ++i) {
    const core::Judgement& judgement = judged_[i].judgement;
    const auto* seen = std::get_if<core::Present>(&readings_[i].outcome);
    if (!judgement.dropped) {
      ledger_.update_index(judgement.next, {run, !judgement.unknown.empty(), Index::ticks(readings_[i].asked),
                                            seen != nullptr ? &seen->observation : nullptr});
    }
    for (const auto& transition : judgement.transitions) {
      if (!transition.from) metrics.drift_detected(name, transition.drift.cls);
    }
  }
  ledger_.adopt(extras_);
  co_return applied;
}

}  // namespace driftd::engine
