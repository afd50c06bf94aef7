// SPDX-License-Identifier: Apache-2.0
// Health probes, decisions and the view of one backend.
#include <algorithm>
#include <boost/asio/as_tuple.hpp>

#include "base/log.hpp"
#include "engine/decision.hpp"
#include "engine/runner.hpp"

namespace driftd::engine {
namespace {

constexpr std::chrono::milliseconds kMaxProbeInterval{10'000};
// While a changed state is not confirmed yet, and for expiries.
constexpr std::chrono::milliseconds kRetryInterval{1'000};
constexpr int kTries = 8;

using State = core::HealthReport::State;

}  // namespace

Task<void> Runner::health_loop() {
  const auto self = shared_from_this();
  while (!stopping_) {
    co_await probe();
    const bool sure = health_.state == hysteresis_.state();
    const auto wait = std::min(sure ? kMaxProbeInterval : kRetryInterval, ledger_.spec().interval);
    co_await wait_until(probe_due_, context_->clock.mono() + wait);
  }
  co_await ended();
}

Task<void> Runner::probe() {
  const auto probed = co_await session_->health();
  if (stopping_) co_return;
  core::HealthReport report;
  const core::WorkerStatus worker = session_->status();
  const bool serves = worker.state == "running" || worker.state == "in-process";
  // The worker has not answered yet.
  if (!probed && worker.state == "starting" && worker.restarts == restarts_seen_) co_return;
  if (probed) {
    report = *probed;
    note_identity(report.system_identity);
  } else {
    // A provider that died, hangs or restarts makes data older. It does not mean that the system is down.
    const bool provider_fault = !serves || worker.restarts != restarts_seen_;
    report.state = provider_fault ? State::degraded : State::down;
    report.reason = probed.error().message;
  }
  if (report.state == State::up && last_code_ != Code::ok && last_code_ != Code::cancelled) {
    report.state = State::degraded;
    report.reason = last_error_;
  }
  restarts_seen_ = worker.restarts;
  health_ = report;
  const auto notice = hysteresis_.report(report.state, context_->clock.mono());
  if (notice) co_await publish_health(*notice, std::move(report));
}

/// Notices another system between two cycles, so that pages of the watch are not judged as if they came from the
/// accepted one.
void Runner::note_identity(const std::string& identity) {
  const std::string& accepted = ledger_.row().system_identity;
  if (identity.empty() || accepted.empty() || identity == accepted || identity_held_ || identity_changed_) return;
  identity_changed_ = full_next_ = true;
  hint();
}

Task<void> Runner::publish_health(Hysteresis::Notice notice, core::HealthReport report) {
  std::vector<core::EventDraft> events;
  report.state = notice.now;
  const std::string also = report.reason.empty() ? std::string() : "; " + report.reason;
  if (notice.flapping_began) report.reason = "flapping: 4 changes in 10 minutes" + also;
  if (notice.flapping_ended) report.reason = "no longer flapping" + also;
  // A backend that is first seen healthy has not changed.
  if (notice.before != State::unknown || notice.now != State::up) {
    core::BackendEvent event =
        core::health_event(ledger_.event_context("health probe"), notice.before, report, context_->clock.wall());
    events.push_back(ledger_.draft(std::move(event)));
  }
  const Status status = co_await ledger_.commit_health(notice.now, std::move(events));
  if (status) {
    hysteresis_.published(notice);
  } else {  // the next probe tries again
    log::room("engine").error("{}: health event: {}", ledger_.spec().name, status.error().message);
  }
}

Task<Result<core::Drift>> Runner::decide(core::StoredResource resource, std::string drift_id, core::Decision decision) {
  const auto self = shared_from_this();
  const core::ResourceId identity{"backend", ledger_.spec().name};
  const bool claim = resource.id.kind == "claim";
  const bool pseudo = claim || resource.id.kind == "scope" || resource.id == identity;
  AsyncMutex::Guard held;
  if (pseudo) held = co_await cycle_mutex_.lock();  // its approval changes the backend's row, which a cycle writes, too
  for (int attempt = 0; attempt < kTries; ++attempt) {
    if (stopping_)
      co_return fail(Code::conflict,
                     "backend " + ledger_.spec().name + " is ending: nothing of it is decided any more");
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
    const bool accepts = extras.row.has_value();
    const core::StoredResource next = claim ? judgement.next : core::StoredResource{};
    const Status done = co_await ledger_.commit(std::move(resource), std::move(judgement),
                                                "decision of " + decision.actor, std::move(extras));
    if (done && decision.expires_ns) due_.cancel();  // it may be the next to expire
    if (done && pseudo) {
      // The next cycle finds out whether an ignored identity is held.
      if (decided.resource == identity) identity_held_ = !accepts;
      full_next_ = true;
      hint();
    }
    if (done && claim) {
      claims_.apply_decision(next);
      context_->sources->claims_decided(ledger_.spec().name);
    }
    if (done) co_return decided;
    if (done.error().code != Code::conflict) co_return fail(done.error());
    DRIFTD_CO_TRY(auto again, co_await context_->store.owner_of(drift_id));
    resource = std::move(again.resource);
  }
  co_return fail(Code::conflict, "drift " + drift_id + " keeps moving; look at it again");
}

/// Expires decisions before anything is read, so that they expire in time even if the system cannot be read.
Task<Status> Runner::expire_decisions() {
  const core::ResourceId identity{"backend", ledger_.spec().name};
  DRIFTD_CO_TRY(const auto expired, co_await ledger_.expire_due_decisions());
  const bool is_open_again = std::find(expired.begin(), expired.end(), identity) != expired.end();
  if (is_open_again) identity_held_ = true;  // the identity must be decided again
  co_return Status{};
}

/// Returns when the first decision expires. The wall clock may be set, so the result is at most an hour ahead.
Schedule::Clock::time_point Runner::next_expiry(Schedule::Clock::time_point now) const {
  const auto first = ledger_.first_expiry();
  if (!first) return Schedule::Clock::time_point::max();
  const std::chrono::nanoseconds left(*first - context_->clock.wall());
  const auto wait = std::clamp<std::chrono::nanoseconds>(left, std::chrono::nanoseconds(0), std::chrono::hours(1));
  return std::max(now + std::chrono::duration_cast<Schedule::Clock::duration>(wait), next_expiry_check_);
}

/// Expires decisions between cycles, and while nothing may be read.
Task<void> Runner::expire_decisions_in_time() {
  const auto now = context_->clock.mono();
  if (stopping_ || next_expiry(now) > now) co_return;
  next_expiry_check_ = now + kRetryInterval;
  const auto self = shared_from_this();
  const AsyncMutex::Guard held = co_await cycle_mutex_.lock();
  if (stopping_) co_return;
  const Status expired = co_await expire_decisions();
  if (!expired) log::room("engine").warn("{}: {}", ledger_.spec().name, expired.error().message);
}

/// Returns the backend's row with what an approval of a pseudo-resource accepts. It is committed together with the
/// decision.
std::optional<core::BackendRow> Runner::row_accepting(const core::Drift& drift, const core::Decision& decision) const {
  if (decision.verb != core::Decision::Verb::approve || drift.changes.empty()) return std::nullopt;
  const std::string seen = drift.changes.front().new_value.value_or("null");
  if (drift.resource.kind == "scope") return ledger_.row_accepting(drift.resource.id, decision.actor, seen);
  if (drift.resource != core::ResourceId{"backend", ledger_.spec().name}) return std::nullopt;
  core::BackendRow out = ledger_.row();
  const auto value = core::parse(seen);
  if (value && value->string() != nullptr) out.system_identity = *value->string();
  return out;
}

std::string Runner::state() const {
  const std::string worker = session_->status().state;
  if (worker == "no plugin" || worker == "discovered") return worker;
  if (identity_held_) return "held";
  if (cycles_ == 0) return "starting";
  if (last_code_ == Code::denied || last_code_ == Code::unauthenticated) return "denied";
  if (last_code_ == Code::invalid || last_code_ == Code::unsupported) return "failed";
  if (schedule_.backing_off()) return "backoff";
  return schedule_.late() ? "late" : "ok";
}

/// Adds the coverage line of a registration that an earlier process knew and on which its source has not reported
/// since.
void Runner::add_unreported_registration(std::vector<core::Coverage>& coverage) {
  const std::string kind(core::kRegistration);
  const bool of_config = ledger_.spec().discovered_by.empty();
  if (reported_at_ != Moment::Mono{} || !ledger_.established(kind) ||
      (of_config && !ledger_.row().notes.contains(kRegistrarNote)))
    return;
  std::erase_if(coverage, [&](const auto& line) { return line.kind == kind; });
  core::Coverage line;
  line.kind = kind;
  line.established = true;
  line.resources = ledger_.index().present(kind);
  const std::string staleness_reason = context_->sources->staleness_reason(ledger_.spec().name);
  line.reasons.push_back(staleness_reason.empty() ? "its source has not reported it since the agent started"
                                                  : staleness_reason);
  coverage.push_back(std::move(line));
}

core::BackendView Runner::view() {
  core::BackendView out;
  const core::BackendSpec& spec = ledger_.spec();
  out.uid = ledger_.row().uid;
  out.name = spec.name;
  out.type = ledger_.row().type;
  out.provider = ledger_.info() != nullptr ? ledger_.info()->id : spec.provider;
  out.endpoint = spec.endpoint;
  out.labels = spec.labels;
  out.patterns = spec.patterns;
  out.state = state();
  out.health = health_;
  out.health.state = hysteresis_.state();
  out.health_reason = health_.reason;
  out.worker = session_->status();
  out.coverage = coverage_;
  for (auto& coverage : out.coverage) {
    const std::string staleness_reason =
        coverage.kind == core::kRegistration ? context_->sources->staleness_reason(spec.name) : std::string();
    if (!staleness_reason.empty()) {
      coverage.complete = false;
      coverage.reasons.insert(coverage.reasons.begin(), staleness_reason);
    }
    if (!coverage.kind.starts_with("declared:")) coverage.resources = ledger_.index().present(coverage.kind);
  }
  if (discovery_) out.coverage.push_back(*discovery_);
  add_unreported_registration(out.coverage);
  out.resources = ledger_.index().present();
  out.open_drifts = ledger_.index().open();
  out.cycles = cycles_;
  out.failures = failures_;
  out.last_complete_ns = last_complete_ns_;
  const auto until_next = schedule_.next() - context_->clock.mono();
  out.next_ns = context_->clock.wall() + std::chrono::duration_cast<std::chrono::nanoseconds>(until_next).count();
  out.last_error = last_error_;
  out.interval_ms = spec.interval.count();
  out.achievable_ms = schedule_.achievable().count();
  return out;
}

}  // namespace driftd::engine
