// SPDX-License-Identifier: Apache-2.0
#include "engine/runner.hpp"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>

#include "base/fatal.hpp"
#include "base/log.hpp"
#include "base/memory.hpp"
#include "engine/context.hpp"
#include "engine/cycle.hpp"
#include "engine/explanation.hpp"
#include "engine/resource_budget.hpp"
#include "engine/sources/registration_session.hpp"
#include "engine/sources/source_hub.hpp"
#include "engine/unregistration.hpp"

namespace driftd::engine {
namespace {

constexpr std::uint64_t kLongList = 1'000;                  // a full run with more records trims the heap afterwards
constexpr std::chrono::milliseconds kProbeHeldBack{2'000};  // while backpressure holds the backend
constexpr std::chrono::milliseconds kMinCycleDeadline{60'000};

}  // namespace

Runner::Runner(std::shared_ptr<Context> context, core::BackendSpec spec, core::BackendRow row,
               std::shared_ptr<RegistrationSession> session)
    : context_(std::move(context)),
      session_(std::move(session)),
      ledger_(context_, spec, row),
      cycle_mutex_(context_->core),
      plan_(context_->core, spec.interval),
      history_(spec.name),
      identity_(context_, ledger_, *session_),
      registration_(context_, ledger_, *session_),
      discovery_(context_, ledger_, *session_),
      health_(context_, ledger_, *session_, history_,
              [this](const std::string& identity) {
                if (identity_.note_probe(identity)) plan_.hint_full();
              }),
      watch_(context_, ledger_, *session_, plan_,
             [this](core::RecordPage page, Moment before, Moment received) {
               return judge_under_lock(std::move(page), before, received);
             }),
      enforcer_(context_, ledger_, *session_),
      all_ended_(context_->core) {}

Task<Status> Runner::load() {
  DRIFTD_CO_CHECK(co_await ledger_.load());
  identity_.load();
  const Status loaded = co_await registration_.load();
  co_return loaded;
}

void Runner::start() {
  loops_ = 3;
  session_->on_change([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->on_plugin_change();
  });
  asio::co_spawn(context_->core, cycle_loop(), fatal);
  asio::co_spawn(context_->core, health_loop(), fatal);
  asio::co_spawn(context_->core, watch_loop(), fatal);
}

/// Another plugin runs now. The next cycle reads everything, with its kinds and schemas, and the watch restarts after
/// it.
void Runner::on_plugin_change() {
  plan_.start_over();
  health_.wake();
}

Task<void> Runner::stop() {
  stopping_ = true;
  ledger_.stop();
  plan_.stop();
  health_.stop();
  watch_.stop();
  co_await session_->stop();
  while (loops_ > 0) {
    all_ended_.expires_at(CyclePlan::Time::max());
    co_await all_ended_.async_wait(asio::as_tuple(asio::use_awaitable));
  }
  const AsyncMutex::Guard last = co_await cycle_mutex_.lock();  // a refresh on demand may still commit
}

void Runner::loop_ended() {
  --loops_;
  all_ended_.cancel();
}

Task<void> Runner::health_loop() {
  const auto self = shared_from_this();
  co_await health_.run();
  loop_ended();
}

Task<void> Runner::watch_loop() {
  const auto self = shared_from_this();
  co_await watch_.run();
  loop_ended();
}

void Runner::declared() {
  declarations_changed_ = true;
  plan_.hint_full();
}

Task<void> Runner::cycle_loop() {
  const auto self = shared_from_this();
  const Clock& clock = context_->clock;
  while (!stopping_) {
    if (!plan_.held_back()) {
      plan_.answer_hints(clock.mono());
      const CycleReport report = co_await refresh(false);
      if (!report.status) log::room("engine").warn("{}: {}", ledger_.spec().name, report.status.error().message);
    }
    while (!stopping_ && clock.mono() < plan_.next()) {
      const auto planned = std::min(plan_.next(), discovery_.due());
      co_await plan_.wait_until(std::min(planned, next_time(clock.mono())));
      co_await keep_times();
      co_await discover_if_due();
    }
    if (plan_.held_back() && !stopping_) co_await plan_.wait_until(clock.mono() + kProbeHeldBack);
    co_await keep_times();
  }
  loop_ended();
}

Task<CycleReport> Runner::refresh(bool full) {
  const auto self = shared_from_this();
  const AsyncMutex::Guard held = co_await cycle_mutex_.lock();
  CycleReport report;
  if (stopping_) {
    report.status = fail(Code::cancelled, "the agent is stopping");
    co_return report;
  }
  if (plan_.held_back()) {
    report.status = fail(Code::unavailable,
                         "nothing is read while the outbox is full; `driftd status` shows the sink that is behind");
    co_return report;
  }
  const auto start = context_->clock.mono();
  plan_.note_start(start);
  const std::uint64_t unstored = ledger_.unstored();
  report = co_await cycle(full);
  const Moment end = Moment::of(context_->clock);
  history_.record(report, start, end);
  if (cycles() == 1 && context_->first_cycle_ended) context_->first_cycle_ended();
  Schedule& schedule = plan_.schedule();
  if (report.next.count() > 0) schedule.hint(report.next);
  const auto failed = ledger_.unstored() != unstored ? Schedule::Outcome::unstored : Schedule::Outcome::failed;
  schedule.record_cycle(start, end.mono, report.status ? Schedule::Outcome::succeeded : failed);
  context_->metrics.observe_refresh(ledger_.spec().name, end.mono - start, report.status.has_value());
  context_->metrics.records(ledger_.spec().name, report.received, report.settled);
  if (report.status && report.unchanged) report.coverage = history_.coverage();
  co_return report;
}

Task<Status> Runner::prepare() {
  DRIFTD_CO_TRY(const auto info, co_await session_->info());
  if (info == noted_info_) co_return Status{};
  ledger_.set_info(info);
  CommitExtras extras;
  DRIFTD_CO_TRY(extras.row, co_await ledger_.row_with_schemas());
  const bool by_path = ledger_.spec().provider.find('/') != std::string::npos;
  if (by_path && ledger_.row().type != info->id) {
    if (!extras.row) extras.row = ledger_.row();
    extras.row->type = info->id;
  }
  DRIFTD_CO_CHECK(co_await ledger_.commit_extras(std::move(extras)));
  noted_info_ = info;
  co_return Status{};
}

Task<CycleReport> Runner::list(std::string cursor) {
  Cycle one(context_, ledger_, *session_, ++run_);
  CycleReport out = co_await one.run(cursor, cycle_deadline(), digests_);
  if (one.needs_records() && std::exchange(digests_, false)) {
    out = co_await list(std::move(cursor));
    co_return out;
  }
  digests_ = out.status && !one.left_out() && one.dropped() == 0;
  if (one.unconfirmed()) plan_.require_full();
  if (one.must_list_again()) plan_.list_again(context_->clock.mono());
  if (one.left_out()) plan_.note_left_out();
  if (out.status && !out.unchanged && session_->inner_listed() && !out.registrations.left_out) {
    one.retract_unmentioned();
    context_->sources->listed(ledger_.spec().name);
  }
  co_return out;
}

Task<CycleReport> Runner::cycle(bool full) {
  CycleReport report;
  const Status expired = co_await expire_decisions();
  report.status = co_await turn_rules();
  if (report.status) report.status = co_await prepare();
  if (report.status) report.status = co_await identity_.check(cycle_deadline());
  // before anything is judged: what an operation wrote must not look as if it went away by itself
  if (report.status) log_failure(co_await enforcer_.settle_open());
  if (report.status && std::exchange(declarations_changed_, false)) {
    report.status = co_await ledger_.load_declared();
    declarations_changed_ = declarations_changed_ || !report.status;
  }
  if (!report.status) co_return report;
  CyclePlan::Pass pass = plan_.begin(full, can_admit(ledger_), context_->clock.mono());
  std::string cursor = pass.full ? std::string() : ledger_.row().cursor;
  report = co_await list(std::move(cursor));
  if (!report.status && report.status.error().code == Code::cursor_expired) {
    pass.full = true;
    std::string none;
    report = co_await list(std::move(none));
  }
  if (report.status) {
    co_await discovery_.run(!report.unchanged);
  } else {
    discovery_.leave_to_cycle();
  }
  if (const Status noted = co_await registration_.persist_registrar(); report.status && !noted) report.status = noted;
  if (const Status asked = co_await registration_.write_claim_drift(); report.status && !asked) report.status = asked;
  const bool had_baseline = plan_.has_baseline();
  if (!plan_.finish(pass, report)) co_return report;
  if (!had_baseline && plan_.has_baseline()) watch_.wake();
  // A discovered backend has no provider of its own, so what it lists says nothing about kinds.
  if (pass.full && report.status && ledger_.spec().discovered_by.empty()) {
    report.status = co_await drop_former_kinds(context_, ledger_);
  }
  if (pass.full && report.status && report.received >= kLongList) asio::post(context_->diff, release_free_memory);
  if (report.status) {
    log_failure(co_await enforcer_.run());
    if (const auto next = enforcer_.next_call(); next.count() > 0 && (report.next.count() == 0 || next < report.next))
      report.next = next;
  }
  if (report.status && !expired) report.status = expired;
  co_return report;
}

void Runner::log_failure(const Status& enforced) const {
  if (!enforced) log::room("engine").warn("{}: enforcement: {}", ledger_.spec().name, enforced.error().message);
}

std::chrono::milliseconds Runner::cycle_deadline() const {
  return std::max(kMinCycleDeadline, std::chrono::milliseconds(ledger_.spec().budgets.call));
}

Task<Status> Runner::reload(core::BackendSpec spec, std::vector<core::AuditEntry> audit) {
  const auto self = shared_from_this();
  const auto interval = spec.interval;
  {
    const AsyncMutex::Guard held = co_await cycle_mutex_.lock();
    if (stopping_) co_return fail(Code::cancelled, "backend " + spec.name + " is stopping: it was not changed");
    DRIFTD_CO_CHECK(co_await turn_rules());  // a rule that the file has no more may have ended before
    DRIFTD_CO_CHECK(co_await registration_.update(std::move(spec), std::move(audit)));
    plan_.schedule().set_interval(interval);
    plan_.require_full();
  }
  plan_.hint();
  co_return Status{};
}

Task<Result<std::vector<core::Step>>> Runner::explain(core::ResourceId id, std::string path) {
  const auto self = shared_from_this();
  auto steps = co_await engine::explain(context_, ledger_, *session_, std::move(id), std::move(path));
  co_return steps;
}

core::Session& Runner::session() { return *session_; }

}  // namespace driftd::engine
