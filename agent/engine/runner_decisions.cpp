// SPDX-License-Identifier: Apache-2.0
// Decisions of people on drifts of one backend, and their expiry.
#include <algorithm>

#include "core/judge/rules.hpp"
#include "core/scope.hpp"
#include "engine/context.hpp"
#include "engine/decision_binding.hpp"
#include "engine/runner.hpp"
#include "engine/sources/source_hub.hpp"

namespace driftd::engine {
namespace {

constexpr int kDecisionTries = 8;  // a reading between load and commit is rare

core::ResourceId identity_of(const core::BackendSpec& spec) { return {"backend", spec.name}; }

}  // namespace

Task<Result<core::Drift>> Runner::decide(core::StoredResource resource, std::string drift_id, core::Decision decision) {
  const auto self = shared_from_this();
  const core::ResourceId identity = identity_of(ledger_.spec());
  const bool claim = resource.id.kind == "claim";
  const bool pseudo = claim || resource.id.kind == "scope" || resource.id == identity;
  AsyncMutex::Guard held;
  if (pseudo) held = co_await cycle_mutex_.lock();  // its approval changes the backend's row, which a cycle writes, too
  for (int attempt = 0; attempt < kDecisionTries; ++attempt) {
    if (stopping_)
      co_return fail(Code::conflict,
                     "backend " + ledger_.spec().name + " is ending: nothing of it is decided any more");
    decision.approvals_needed = approvals_needed(resource, drift_id);
    DRIFTD_CO_CHECK(check_no_operation(resource.id, drift_id));
    DRIFTD_CO_TRY(const core::Decision exact, resolve_binding(context_->store_key, resource, drift_id, decision));
    DRIFTD_CO_TRY(core::Judgement judgement, core::decide(resource, drift_id, exact));
    if (judgement.transitions.empty()) {
      co_return fail(Code::conflict, "drift " + drift_id + " already has this decision");
    }
    core::Drift decided = judgement.transitions.front().drift;
    const auto from = judgement.transitions.front().from.value_or(core::DriftStatus::pending);
    CommitExtras extras;
    extras.row = row_accepting(decided, decision);
    extras.audit.push_back(decision_entry(context_->store_key, decided, from, decision, ledger_.spec().name));
    if (!decision.link.empty()) extras.link = decision.link;
    extras.link_used_ns = decision.at_ns;
    const bool accepts = extras.row.has_value();
    const core::StoredResource next = claim ? judgement.next : core::StoredResource{};
    const Status done = co_await ledger_.commit(std::move(resource), std::move(judgement),
                                                "decision of " + decision.actor, std::move(extras));
    if (done && decision.expires_ns) plan_.wake();  // it may be the next to expire
    if (done && pseudo) {
      // The next cycle finds out whether an ignored identity is held.
      if (decided.resource == identity) identity_.note_decision(accepts);
      plan_.hint_full();
    }
    if (done && claim) {
      registration_.claims().apply_decision(next);
      context_->sources->claims_decided(ledger_.spec().name);
    }
    if (done) co_return decided;
    if (done.error().code != Code::conflict) co_return fail(done.error());
    DRIFTD_CO_TRY(auto again, co_await context_->store.owner_of(drift_id));
    resource = std::move(again.resource);
  }
  co_return fail(Code::conflict, "drift " + drift_id + " keeps moving; look at it again");
}

/// Nothing that an operation relies on is decided while it is open.
Status Runner::check_no_operation(const core::ResourceId& resource, const std::string& drift_id) {
  const core::Enforcement* open = ledger_.enforcements().find_open(resource);
  if (open == nullptr) return {};
  return fail(Code::conflict, "drift " + drift_id + ": " + core::render(resource) + " is being put back by " +
                                  open->id + "; decide once it has ended (`driftd operations`)");
}

/// Returns how many persons must approve the drift under the rules of this moment: it may have been judged under
/// others.
int Runner::approvals_needed(const core::StoredResource& resource, const std::string& drift_id) const {
  const core::JudgeContext judged = ledger_.judge_context(resource.id.kind, false);
  int needed = 1;
  for (const auto& drift : resource.open) {
    if (drift.id == drift_id && judged.rules) needed = core::approvals_needed(*judged.rules, drift);
  }
  return needed;
}

Task<Result<core::Drift>> Runner::undo_approval(core::Store::EndedDrift ended, core::Decision decision) {
  const auto self = shared_from_this();
  core::Drift approved = std::move(ended.drift);
  core::StoredResource resource = std::move(ended.owner.resource);
  const std::string& kind = approved.resource.kind;
  if (core::is_own_kind(kind)) {
    co_return fail(Code::conflict,
                   "drift " + approved.id + " of " + core::render(approved.resource) +
                       ": what its approval accepted is in use already (deletions, another system or who may define " +
                       "a backend) and cannot be undone");
  }
  DRIFTD_CO_TRY(const core::Decision exact, resolve_binding(context_->store_key, approved, decision));
  for (int attempt = 0; attempt < kDecisionTries; ++attempt) {
    if (stopping_) {
      co_return fail(Code::conflict,
                     "backend " + ledger_.spec().name + " is ending: nothing of it is decided any more");
    }
    DRIFTD_CO_CHECK(check_no_operation(resource.id, approved.id));
    DRIFTD_CO_TRY(core::Judgement judgement, core::undo_approval(resource, approved, exact));
    const core::Drift open_again = judgement.transitions.front().drift;
    CommitExtras extras;
    extras.audit.push_back(
        decision_entry(context_->store_key, open_again, approved.status, decision, ledger_.spec().name));
    const Status done = co_await ledger_.commit(std::move(resource), std::move(judgement),
                                                "decision of " + decision.actor, std::move(extras));
    if (done) co_return open_again;
    if (done.error().code != Code::conflict) co_return fail(done.error());
    DRIFTD_CO_TRY(auto again, co_await context_->store.ended_drift(approved.id));
    approved = std::move(again.drift);
    resource = std::move(again.owner.resource);
  }
  co_return fail(Code::conflict, "drift " + approved.id + ": its resource keeps moving; look at it again");
}

Task<Result<core::Drift>> Runner::claim(core::StoredResource resource, std::string drift_id, core::Claim claim) {
  const auto self = shared_from_this();
  for (int attempt = 0; attempt < kDecisionTries; ++attempt) {
    core::Judgement judgement;
    DRIFTD_CO_TRY(judgement.next, core::claim(resource, drift_id, claim));
    const auto& open = judgement.next.open;
    const auto claimed =
        *std::find_if(open.begin(), open.end(), [&](const core::Drift& drift) { return drift.id == drift_id; });
    CommitExtras extras;
    extras.audit.push_back(claim_entry(context_->store_key, claimed, claim, ledger_.spec().name));
    if (!claim.link.empty()) extras.link = claim.link;
    extras.link_used_ns = claim.at_ns;
    const Status done = co_await ledger_.commit(std::move(resource), std::move(judgement), "claim of " + claim.actor,
                                                std::move(extras));
    if (done) co_return claimed;
    if (done.error().code != Code::conflict) co_return fail(done.error());
    DRIFTD_CO_TRY(auto again, co_await context_->store.owner_of(drift_id));
    resource = std::move(again.resource);
  }
  co_return fail(Code::conflict, "drift " + drift_id + " keeps moving; look at it again");
}

Task<Result<core::Enforcement>> Runner::enforce(std::string drift_id, std::string digest, bool dry_run,
                                                core::Asked asked) {
  const auto self = shared_from_this();
  const AsyncMutex::Guard held = co_await cycle_mutex_.lock();
  if (stopping_) co_return fail(Code::cancelled, "backend " + ledger_.spec().name + " is stopping: nothing was done");
  if (plan_.held_back()) co_return fail(Code::unavailable, "nothing is written while the outbox is full");
  DRIFTD_CO_CHECK(co_await prepare());
  DRIFTD_CO_CHECK(co_await identity_.check(cycle_deadline()));
  log_failure(co_await enforcer_.settle_open());  // the brakes hold what has an open operation itself
  DRIFTD_CO_TRY(auto owner, co_await context_->store.owner_of(drift_id));
  for (const auto& drift : owner.resource.open) {
    if (drift.id != owner.drift_id || drift.digest == digest) continue;
    co_return fail(Code::conflict, "drift " + drift.id + " moved since you looked; look again, then decide");
  }
  DRIFTD_CO_TRY(auto done,
                co_await enforcer_.ask(std::move(owner.resource), owner.drift_id, dry_run, std::move(asked)));
  if (core::is_open(done.state) && !dry_run) plan_.hint();
  co_return done;
}

Task<Status> Runner::lift_stop(std::string drift_id, core::Asked asked) {
  const auto self = shared_from_this();
  {
    const AsyncMutex::Guard held = co_await cycle_mutex_.lock();
    DRIFTD_CO_TRY(auto owner, co_await context_->store.owner_of(drift_id));
    DRIFTD_CO_CHECK(co_await enforcer_.lift_stop(std::move(owner.resource), owner.drift_id, std::move(asked)));
  }
  plan_.hint();
  co_return Status{};
}

/// Expires decisions before anything is read, so that they expire in time even if the system cannot be read.
Task<Status> Runner::expire_decisions() {
  const core::ResourceId identity = identity_of(ledger_.spec());
  DRIFTD_CO_TRY(const auto expired, co_await ledger_.expire_due_decisions());
  const bool is_open_again = std::find(expired.begin(), expired.end(), identity) != expired.end();
  if (is_open_again) identity_.note_expiry();
  co_return Status{};
}

/// Returns the backend's row with what an approval of a pseudo-resource accepts. It is committed together with the
/// decision.
std::optional<core::BackendRow> Runner::row_accepting(const core::Drift& drift, const core::Decision& decision) const {
  if (drift.status != core::DriftStatus::approved || drift.changes.empty()) return std::nullopt;
  const std::string seen = drift.changes.front().new_value.value_or("null");
  if (drift.resource.kind == "scope") return ledger_.row_accepting(drift.resource.id, decision.actor, seen);
  if (drift.resource != identity_of(ledger_.spec())) return std::nullopt;
  core::BackendRow out = ledger_.row();
  const auto value = core::parse(seen);
  if (value && value->string() != nullptr) out.system_identity = *value->string();
  return out;
}

}  // namespace driftd::engine
