// SPDX-License-Identifier: Apache-2.0
// What people ask about enforcement, passed on to the backend that it is about; and the switch of everything.
#include "engine/context.hpp"
#include "engine/decision_binding.hpp"
#include "engine/enforcement_switch.hpp"
#include "engine/engine.hpp"
#include "engine/runner.hpp"

namespace driftd::engine {

Task<Status> Engine::load_switch() {
  if (context_->enforcement == nullptr) co_return Status{};
  std::string of_all;
  DRIFTD_CO_TRY(const auto record,
                co_await context_->store.enforcement_record(std::move(of_all), context_->clock.wall()));
  for (const auto& stop : record.stops) context_->enforcement->stop = stop;
  co_return Status{};
}

Task<Result<core::Enforcement>> Engine::enforce(std::string drift_id, std::string digest, bool dry_run,
                                                core::Asked asked) {
  DRIFTD_CO_TRY(auto owner, co_await context_->store.owner_of(drift_id));
  core::Decision named;
  named.digest = digest;
  DRIFTD_CO_TRY(const auto exact, resolve_binding(context_->store_key, owner.resource, owner.drift_id, named));
  std::shared_ptr<Runner> runner;
  for (const auto& [name, one] : runners_) {
    if (one->ledger().row().uid == owner.backend_uid) runner = one;
  }
  if (runner == nullptr) {
    co_return fail(Code::not_found, "the backend of drift " + drift_id + " is not registered any more");
  }
  for (const auto& drift : owner.resource.open) {
    if (drift.id != owner.drift_id || drift.digest == exact.digest) continue;
    co_return fail(Code::conflict, "drift " + drift.id + " of " + render(drift.resource) +
                                       ": its value moved since you looked; now it is " + core::render_changes(drift) +
                                       "; look again, then decide");
  }
  auto done = co_await runner->enforce(owner.drift_id, *exact.digest, dry_run, std::move(asked));
  co_return done;
}

Task<Status> Engine::lift_stop(std::string drift_id, core::Asked asked) {
  DRIFTD_CO_TRY(const auto owner, co_await context_->store.owner_of(drift_id));
  std::shared_ptr<Runner> runner;
  for (const auto& [name, one] : runners_) {
    if (one->ledger().row().uid == owner.backend_uid) runner = one;
  }
  if (runner == nullptr) {
    co_return fail(Code::not_found, "the backend of drift " + drift_id + " is not registered any more");
  }
  const Status done = co_await runner->lift_stop(owner.drift_id, std::move(asked));
  co_return done;
}

/// The stored switch and its audit line are one commit; only then does it count.
Task<Status> Engine::switch_enforcement(bool on, core::Asked asked) {
  if (context_->enforcement == nullptr) co_return fail(Code::unsupported, "this process does not put values back");
  const std::shared_ptr<EnforcementSwitch> shared = context_->enforcement;
  core::EnforcementStop next;
  if (on) {
    next = shared->stop;
    if (next.at_ns == 0 || !next.stands()) co_return fail(Code::conflict, "enforcement is not switched off by command");
    next.lifted_ns = asked.at_ns;
    next.lifted_by = asked.actor;
  } else {
    next = {{}, {}, asked.reason, asked.actor, asked.at_ns, {}, {}};
    shared->stop = next;  // it holds at once, whatever becomes of the commit
  }
  core::PageCommit page;
  core::AuditEntry line;
  line.at_ns = asked.at_ns;
  line.actor = asked.actor;
  line.caller = asked.caller;
  line.verb = on ? "enforce on" : "enforce off";
  line.subject = "enforcement";
  line.reason = asked.reason;
  page.audit.push_back(std::move(line));
  page.enforcement_stops.push_back(next);
  const auto stored = co_await context_->store.commit(std::move(page));
  if (!stored) co_return fail(stored.error());
  shared->stop = std::move(next);
  co_return Status{};
}

core::EnforcementView Engine::enforcement() {
  core::EnforcementView out;
  out.off =
      context_->enforcement == nullptr ? "this process does not put values back" : context_->enforcement->why_off();
  for (const auto& [name, runner] : runners_) out.backends.push_back(runner->enforcement());
  return out;
}

}  // namespace driftd::engine
