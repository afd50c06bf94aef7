// SPDX-License-Identifier: Apache-2.0
#include "engine/enforcer.hpp"

#include <algorithm>

#include "base/log.hpp"
#include "core/enforce/plan.hpp"
#include "engine/context.hpp"
#include "engine/decision_binding.hpp"
#include "engine/enforcement_switch.hpp"
#include "engine/ledger.hpp"

namespace driftd::engine {
namespace {

using core::HoldReason;

constexpr std::size_t kConsidered = 1'000, kLoadAtOnce = 16;  // resources in a cycle, rows in memory
constexpr Nanos kKept = 30ll * 86'400 * 1'000'000'000;

core::Asked by_policy(const core::Drift& drift, Nanos now) {
  return {"driftd", drift.reason.empty() ? "policy enforce" : "policy enforce: " + drift.reason, {}, now};
}

const core::Drift* find_open_drift(const core::StoredResource& stored, const std::string& id) {
  const auto found =
      std::find_if(stored.open.begin(), stored.open.end(), [&](const auto& drift) { return drift.id == id; });
  return found == stored.open.end() ? nullptr : &*found;
}

Code code_of(HoldReason reason) { return reason == HoldReason::refused ? Code::invalid : Code::conflict; }

tl::unexpected<Error> held_back(const std::string& drift, const core::Hold& hold) {
  return fail(code_of(hold.reason),
              "drift " + drift + " is not put back (" + std::string(core::render(hold.reason)) + "): " + hold.text);
}

}  // namespace

Enforcer::Enforcer(std::shared_ptr<Context> context, Ledger& ledger, core::Session& session)
    : context_(context),
      ledger_(ledger),
      steps_(std::move(context), ledger, session) {}

Task<Status> Enforcer::settle_open() {
  Status out;
  unsettled_.clear();
  for (auto& operation : ledger_.enforcements().open()) {
    const std::string id = operation.id;
    const Status settled = co_await steps_.settle(std::move(operation));
    if (settled) continue;
    unsettled_.insert(id);
    out = settled;
  }
  co_return out;
}

Nanos Enforcer::stands_since(const core::Drift& drift) {
  const Nanos now = context_->clock.wall();
  const std::string key = drift.id + "@" + drift.digest;
  if (drift.updated_ns <= now) return drift.updated_ns;
  if (noticed_.size() > kConsidered) noticed_.clear();  // more of them than a cycle looks at
  const Nanos noticed = noticed_.try_emplace(key, now).first->second;
  return std::min(noticed, now);
}

core::Candidate Enforcer::candidate_of(const core::StoredResource& row, const core::Drift& drift) {
  core::Candidate out;
  out.drift = drift;
  out.drift.updated_ns = stands_since(drift);
  out.owner = core::owner_mark(row);
  out.writer = core::writer_of(row);
  if (auto plan = core::plan_enforcement(drift, *ledger_.schema(row.id.kind))) out.plan = std::move(*plan);
  return out;
}

/// Loads at most kConsidered resources, and the next cycle goes on behind them, so that none is left out for ever.
Task<Result<std::vector<core::Candidate>>> Enforcer::candidates() {
  const auto& due = ledger_.to_enforce();
  std::vector<core::ResourceId> ids;
  auto at = due.upper_bound(after_);
  while (ids.size() < std::min(kConsidered, due.size())) {
    if (at == due.end()) at = due.begin();
    ids.push_back(*at++);
  }
  after_ = ids.size() < due.size() ? ids.back() : core::ResourceId{};
  std::vector<core::Candidate> out;
  for (std::size_t from = 0; from < ids.size(); from += kLoadAtOnce) {
    const auto to = std::min(ids.size(), from + kLoadAtOnce);
    std::vector<core::ResourceId> some(ids.begin() + static_cast<std::ptrdiff_t>(from),
                                       ids.begin() + static_cast<std::ptrdiff_t>(to));
    DRIFTD_CO_TRY(const auto rows, co_await context_->store.load(ledger_.row().uid, std::move(some)));
    for (const auto& row : rows) {
      for (const auto& drift : row.open) {
        if (drift.action != core::Action::enforce || drift.status != core::DriftStatus::pending) continue;
        out.push_back(candidate_of(row, drift));
      }
    }
  }
  co_return out;
}

core::BrakeState Enforcer::brakes(const std::map<std::string, int>& wanted) const {
  core::BrakeState out;
  out.now_ns = context_->clock.wall();
  out.cycle_began_ns = cycle_began_ns_;
  out.local_offset = core::local_offset(out.now_ns);
  out.off =
      context_->enforcement == nullptr ? "this process does not put values back" : context_->enforcement->why_off();
  out.history = &ledger_.enforcements().operations();
  out.stops = &ledger_.enforcements().stops();
  out.wanted = &wanted;
  return out;
}

void Enforcer::note(const core::Drift& drift, core::Hold hold) {
  hold.resource = drift.resource;
  auto& known = held_[drift.id];
  if (known.reason != hold.reason || known.text.empty()) {
    log::room("engine").info("{}: drift {} of {} is not put back ({}): {}", ledger_.spec().name, drift.id,
                             render(drift.resource), core::render(hold.reason), hold.text);
  }
  known = std::move(hold);
}

Task<Status> Enforcer::run() {
  const Nanos now = context_->clock.wall();
  cycle_began_ns_ = now;
  ledger_.enforcements().bound_times(now);
  ledger_.enforcements().forget_before(now - kKept);
  if (ledger_.to_enforce().empty()) {
    held_.clear();
    co_return Status{};
  }
  DRIFTD_CO_TRY(auto due, co_await candidates());
  std::map<std::string, core::Hold> still;
  for (const auto& one : due) {
    if (const auto known = held_.find(one.drift.id); known != held_.end()) still.insert(*known);
  }
  held_ = std::move(still);
  std::map<std::string, int> wanted;
  for (const auto& one : due) ++wanted[core::canary_key(one.drift.resource, one.plan)];
  Status out;
  for (auto& one : due) {
    const Status done = co_await consider(std::move(one), wanted);
    if (!done) out = done;
  }
  co_return out;
}

Task<Status> Enforcer::consider(core::Candidate candidate, const std::map<std::string, int>& wanted) {
  const core::Drift drift = candidate.drift;
  if (candidate.plan.empty()) {
    const auto plan = core::plan_enforcement(drift, *ledger_.schema(drift.resource.kind));
    note(drift, {HoldReason::refused, plan ? std::string() : plan.error().message, {}});
    co_return Status{};
  }
  if (!can_apply(ledger_)) {
    const auto* info = ledger_.info();
    note(drift, {HoldReason::refused,
                 "provider " + (info == nullptr ? ledger_.spec().provider : info->id + " " + info->version) +
                     " cannot put values back (driftd.apply/1)",
                 {}});
    co_return Status{};
  }
  // behind a clock that was set back, operations of this cycle must not look like those of an earlier one
  cycle_began_ns_ = std::min(cycle_began_ns_, context_->clock.wall());
  const core::BrakeState state = brakes(wanted);
  if (auto hold = core::hold_of(candidate, ledger_.spec().enforce, state)) {
    note(drift, std::move(*hold));
    co_return Status{};
  }
  DRIFTD_CO_TRY(const bool fight, co_await stop_fight(std::move(candidate), state));
  if (fight) co_return Status{};
  core::Asked asked = by_policy(drift, state.now_ns);
  DRIFTD_CO_TRY(auto tried, co_await steps_.carry_out(drift, core::EnforcementCause::policy, std::move(asked), false));
  if (tried.hold)
    note(drift, std::move(*tried.hold));
  else
    held_.erase(drift.id);
  co_return Status{};
}

Task<Result<bool>> Enforcer::stop_fight(core::Candidate candidate, core::BrakeState state) {
  const std::string us = "driftd " + context_->cluster + "/" + context_->agent;
  const core::Drift& drift = candidate.drift;
  const std::string why = core::fight_of(candidate, ledger_.spec().enforce, state, us);
  if (why.empty()) co_return false;
  core::EnforcementStop stop{ledger_.row().uid, drift.resource, why, "driftd", state.now_ns, {}, {}};
  CommitExtras extras;
  core::AuditEntry line = core::make_audit_entry(drift, ledger_.spec().name);
  line.digest = decision_binding(context_->store_key, drift);
  line.at_ns = state.now_ns;
  line.actor = "driftd";
  line.verb = "enforce stopped";
  line.reason = why;
  extras.audit.push_back(std::move(line));
  core::AgentEvent event;
  event.agent = context_->agent;
  event.cluster = context_->cluster;
  event.what = "enforcement_stopped";
  event.backend = ledger_.spec().name;
  event.message = render(drift.resource) + ": " + why + "; `driftd enforce resume " + drift.id + "` goes on";
  event.details = {{"drift", drift.id}, {"resource", render(drift.resource)}, {"us", us}, {"them", candidate.writer}};
  event.at_ns = state.now_ns;
  auto sinks = core::resolve_routes(*context_->routes, "agent." + event.what, event.backend, {}, {});
  extras.events.push_back({std::move(event), std::move(sinks)});
  extras.stops.push_back(std::move(stop));
  DRIFTD_CO_CHECK(co_await ledger_.commit_extras(std::move(extras)));
  note(drift, {HoldReason::stopped, why, {}});
  co_return true;
}

Task<Result<core::Enforcement>> Enforcer::ask(core::StoredResource resource, std::string drift_id, bool dry_run,
                                              core::Asked asked) {
  const core::Drift* found = find_open_drift(resource, drift_id);
  if (found == nullptr)
    co_return fail(Code::not_found, "drift " + drift_id + " ended; `driftd drifts` lists the open ones");
  const core::Drift drift = *found;
  if (cycle_began_ns_ == 0) cycle_began_ns_ = context_->clock.wall();
  ledger_.enforcements().bound_times(context_->clock.wall());
  core::Candidate candidate = candidate_of(resource, drift);
  candidate.cause = core::EnforcementCause::person;
  DRIFTD_CO_TRY(candidate.plan, core::plan_enforcement(drift, *ledger_.schema(resource.id.kind)));
  if (!can_apply(ledger_)) {
    co_return fail(Code::unsupported,
                   "the provider of backend " + ledger_.spec().name + " cannot put values back (driftd.apply/1)");
  }
  const std::map<std::string, int> nothing_else;
  auto hold = core::hold_of(candidate, ledger_.spec().enforce, brakes(nothing_else));
  // a dry run changes nothing, so nobody has to allow it
  if (hold && !dry_run) co_return held_back(drift_id, *hold);
  DRIFTD_CO_TRY(auto tried, co_await steps_.carry_out(drift, core::EnforcementCause::person, asked, dry_run));
  if (tried.hold) co_return held_back(drift_id, *tried.hold);
  if (hold)
    tried.operation->text += (tried.operation->text.empty() ? "" : "; ") + ("now it would be held: " + hold->text);
  co_return std::move(*tried.operation);
}

Task<Status> Enforcer::lift_stop(core::StoredResource resource, std::string drift_id, core::Asked asked) {
  core::EnforcementStop stop{ledger_.row().uid, resource.id, {}, asked.actor, asked.at_ns, asked.at_ns, asked.actor};
  bool stands = false;
  for (const auto& other : ledger_.enforcements().stops()) {
    if (other.resource != resource.id) continue;
    stands = other.stands();
    stop.reason = other.reason;
    stop.actor = other.actor;
    stop.at_ns = other.at_ns;
  }
  CommitExtras extras;
  const auto hold = held_.find(drift_id);
  bool counts = hold != held_.end() && hold->second.reason == HoldReason::tries;  // they may all have ended well
  for (core::Enforcement one : ledger_.enforcements().operations()) {
    if (one.resource != resource.id || one.forgiven || core::is_open(one.state)) continue;
    counts = counts || one.state != core::EnforcementState::done;
    one.forgiven = true;
    extras.enforcements.push_back(std::move(one));
  }
  if (!stands && !counts) {
    co_return fail(Code::conflict, "nothing on " + render(resource.id) +
                                       " waits for a person; `driftd enforce status` "
                                       "lists what does");
  }
  core::AuditEntry line;
  if (const core::Drift* drift = find_open_drift(resource, drift_id)) {
    line = core::make_audit_entry(*drift, ledger_.spec().name);
    line.digest = decision_binding(context_->store_key, *drift);
  }
  line.at_ns = asked.at_ns;
  line.actor = asked.actor;
  line.caller = asked.caller;
  line.verb = "enforce resumed";
  line.reason = asked.reason;
  extras.audit.push_back(std::move(line));
  extras.stops.push_back(std::move(stop));
  DRIFTD_CO_CHECK(co_await ledger_.commit_extras(std::move(extras)));
  held_.erase(drift_id);
  co_return Status{};
}

core::EnforcementView::Backend Enforcer::view() {
  core::EnforcementView::Backend out;
  out.name = ledger_.spec().name;
  out.settings = ledger_.spec().enforce;
  out.held = held_;
  for (const auto& stop : ledger_.enforcements().stops()) {
    if (stop.stands()) out.stopped.push_back(stop);
  }
  out.open = ledger_.enforcements().open();
  out.ended = ledger_.enforcements().ended();
  return out;
}

std::chrono::milliseconds Enforcer::next_call() const {
  Nanos first = 0;
  for (const auto& one : ledger_.enforcements().open()) {
    if (unsettled_.contains(one.id)) continue;  // what cannot be read is asked about in the next cycle, not at once
    if (one.retry_ns && (first == 0 || *one.retry_ns < first)) first = *one.retry_ns;
  }
  if (first == 0) return std::chrono::milliseconds(0);
  const Nanos left = (first - context_->clock.wall()) / 1'000'000;
  return std::chrono::milliseconds(std::clamp<Nanos>(left, 1, 3'600'000));
}

}  // namespace driftd::engine
