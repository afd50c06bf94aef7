// SPDX-License-Identifier: Apache-2.0
// What the clock alone changes at one backend, between cycles and while nothing may be read: decisions that expire, and
// policy rules that begin or end.
#include <algorithm>

#include "base/log.hpp"
#include "engine/context.hpp"
#include "engine/runner.hpp"

namespace driftd::engine {
namespace {

constexpr std::chrono::milliseconds kRetry{1'000};

/// Returns the audit line of a policy rule that began (`holds`) or ended.
core::AuditEntry turn_entry(const core::PolicyRule& rule, bool holds, Nanos now) {
  core::AuditEntry out;
  out.at_ns = now;
  out.actor = "driftd";
  out.verb = holds ? "policy began" : "policy ended";
  out.subject = rule.where;
  out.reason = std::string(render(rule.action));
  if (rule.from_ns) out.reason += " from " + render_time(*rule.from_ns);
  if (rule.until_ns) out.reason += " until " + render_time(*rule.until_ns);
  return out;
}

}  // namespace

/// The wall clock may be set, so the result is at most an hour ahead.
CyclePlan::Time Runner::next_time(CyclePlan::Time now) const {
  std::optional<Nanos> first = ledger_.first_expiry();
  if (const auto turn = ledger_.rules().next_turn()) first = std::min(first.value_or(*turn), *turn);
  if (!first) return CyclePlan::Time::max();
  const std::chrono::nanoseconds left(*first - context_->clock.wall());
  const auto wait = std::clamp<std::chrono::nanoseconds>(left, std::chrono::nanoseconds(0), std::chrono::hours(1));
  return std::max(now + std::chrono::duration_cast<CyclePlan::Time::duration>(wait), next_time_check_);
}

Task<void> Runner::keep_times() {
  const auto now = context_->clock.mono();
  if (stopping_ || next_time(now) > now) co_return;
  next_time_check_ = now + kRetry;
  const auto self = shared_from_this();
  const AsyncMutex::Guard held = co_await cycle_mutex_.lock();
  if (stopping_) co_return;
  Status kept = co_await expire_decisions();
  if (const Status turned = co_await turn_rules(); kept && !turned) kept = turned;
  if (!kept) log::room("engine").warn("{}: {}", ledger_.spec().name, kept.error().message);
}

/// What is known is judged again, under the rules that hold now, by a list of everything.
Task<Status> Runner::turn_rules() {
  const Nanos now = context_->clock.wall();
  const auto turning = ledger_.rules().turning(now);
  core::BackendRow row = ledger_.row();
  if (!turning.empty() || is_timed(ledger_.rules().all()) != row.notes.contains(kRulesNote)) {
    note_rules_time(row.notes, ledger_.rules().all(), now);
    CommitExtras extras;
    extras.row = std::move(row);
    for (const auto& [rule, holds] : turning) {
      extras.audit.push_back(turn_entry(rule, holds, now));
      extras.audit.back().backend = ledger_.spec().name;
    }
    DRIFTD_CO_CHECK(co_await ledger_.commit_extras(std::move(extras)));
  }
  if (!turning.empty()) plan_.hint_full();
  ledger_.take_rules(now);
  co_return Status{};
}

}  // namespace driftd::engine
