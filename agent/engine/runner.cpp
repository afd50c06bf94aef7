// SPDX-License-Identifier: Apache-2.0
#include "engine/runner.hpp"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>

#include "base/fatal.hpp"
#include "base/log.hpp"
#include "base/memory.hpp"
#include "engine/resource_budget.hpp"

namespace driftd::engine {
namespace {

constexpr std::uint64_t kLongList = 1'000;  // a full run with more records trims the heap afterwards
// A full run at least so often, in case a cursor or a watch misses something.
constexpr std::chrono::minutes kFullEvery{10};
constexpr std::chrono::milliseconds kProbeHeldBack{2'000};  // while backpressure holds the backend
// Minimum time between cycles that hints start: a provider may hint without end.
constexpr std::chrono::milliseconds kHintsApart{500};
constexpr std::chrono::milliseconds kMinCycleDeadline{60'000};

/// The first failure that a refresh reports.
struct FirstFailure {
  std::optional<Error> cause;
  bool stopped = false;  ///< we ended the refresh: it did not fail
};

/// Notes the first failure in a page, which is why nothing can be judged. Ends the refresh at the first records,
/// because they are not wanted.
Task<Status> note_cause(std::shared_ptr<FirstFailure> failure, core::RecordPage page) {
  for (const auto& d : page.diagnostics) {
    const bool of_the_system = d.code == Code::unauthenticated || d.code == Code::denied || d.code == Code::unavailable;
    if (!of_the_system || failure->cause) continue;
    failure->cause = Error{d.code, d.text + (d.right.empty() ? std::string() : " (grant " + d.right + ")")};
  }
  if (page.records.empty() && page.marks.empty() && !failure->cause) co_return Status{};
  failure->stopped = true;
  co_return fail(Code::cancelled, "which system answers is not known: nothing of it is taken");
}

}  // namespace

Runner::Runner(std::shared_ptr<Context> context, core::BackendSpec spec, core::BackendRow row,
               std::shared_ptr<RegistrationSession> session)
    : context_(std::move(context)),
      session_(std::move(session)),
      ledger_(context_, spec, row),
      cycle_mutex_(context_->core),
      schedule_(spec.interval),
      hysteresis_(row.health),
      due_(context_->core),
      probe_due_(context_->core),
      watch_due_(context_->core),
      all_ended_(context_->core),
      reasons_log_([name = ledger_.spec().name](bool warning, const std::string& line) {
        log::room("engine").log(warning ? spdlog::level::warn : spdlog::level::info, "{}: {}", name, line);
      }) {}

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
  ++plugin_changes_;
  full_next_ = true;
  last_full_ = {};
  hint();
  probe_due_.cancel();
}

Task<void> Runner::stop() {
  stopping_ = true;
  ledger_.stop();
  due_.cancel();
  probe_due_.cancel();
  watch_due_.cancel();
  co_await session_->stop();
  while (loops_ > 0) {
    all_ended_.expires_at(Schedule::Clock::time_point::max());
    co_await all_ended_.async_wait(asio::as_tuple(asio::use_awaitable));
  }
  const AsyncMutex::Guard last = co_await cycle_mutex_.lock();  // a refresh on demand may still commit
}

Task<void> Runner::ended() {
  --loops_;
  all_ended_.cancel();
  co_return;
}

Task<void> Runner::wait_until(asio::steady_timer& timer, Schedule::Clock::time_point when) {
  if (stopping_) co_return;
  timer.expires_at(when);
  co_await timer.async_wait(asio::as_tuple(asio::use_awaitable));
}

void Runner::hold(bool held) {
  if (std::exchange(held_back_, held) && !held) due_.cancel();
}

void Runner::hint() {
  hinted_ = true;
  due_.cancel();
}

void Runner::declared() {
  declarations_changed_ = true;
  full_next_ = true;
  hint();
}

Schedule::Clock::time_point Runner::next_cycle() const {
  const auto planned = schedule_.next();
  if (held_back_) return planned;
  const auto asked = hinted_ ? last_began_ : relist_at_;
  return std::min(planned, std::max(asked, last_began_ + kHintsApart));
}

Task<void> Runner::cycle_loop() {
  const auto self = shared_from_this();
  while (!stopping_) {
    if (!held_back_) {
      hinted_ = false;
      if (const auto now = context_->clock.mono(); now >= relist_at_) {
        full_next_ = true;
        relisted_at_ = now;
        relist_at_ = Schedule::Clock::time_point::max();
      }
      const CycleReport report = co_await refresh(false);
      if (!report.status) log::room("engine").warn("{}: {}", ledger_.spec().name, report.status.error().message);
    }
    while (!stopping_ && context_->clock.mono() < next_cycle()) {
      co_await wait_until(due_, std::min(next_cycle(), next_expiry(context_->clock.mono())));
      co_await expire_decisions_in_time();
    }
    if (held_back_ && !stopping_) co_await wait_until(due_, context_->clock.mono() + kProbeHeldBack);
    co_await expire_decisions_in_time();
  }
  co_await ended();
}

Task<CycleReport> Runner::refresh(bool full) {
  const auto self = shared_from_this();
  const AsyncMutex::Guard held = co_await cycle_mutex_.lock();
  CycleReport report;
  if (stopping_) {
    report.status = fail(Code::cancelled, "the agent is stopping");
    co_return report;
  }
  if (held_back_) {
    report.status = fail(Code::unavailable,
                         "nothing is read while the outbox is full; `driftd status` shows the sink that is behind");
    co_return report;
  }
  const auto start = context_->clock.mono();
  last_began_ = start;
  const std::uint64_t unstored = ledger_.unstored();
  report = co_await cycle(full);
  const auto end = context_->clock.mono();
  ++cycles_;
  if (!report.status) ++failures_;
  last_error_ = report.status ? std::string() : report.status.error().message;
  last_code_ = report.status ? Code::ok : report.status.error().code;
  if (report.complete() || (report.status && report.unchanged)) last_complete_ns_ = context_->clock.wall();
  if (!report.coverage.empty() && !report.unchanged) {
    if (report.status) reasons_log_.log_changes(coverage_, report.coverage, end);
    coverage_ = report.coverage;
    registration_lines_ = report.registrations;
    listed_ = start;
  } else if (!report.status && report.coverage.empty()) {
    invalidate_coverage(report.status.error());
  }
  if (report.next.count() > 0) schedule_.hint(report.next);
  const auto failed = ledger_.unstored() != unstored ? Schedule::Outcome::unstored : Schedule::Outcome::failed;
  schedule_.record_cycle(start, end, report.status ? Schedule::Outcome::succeeded : failed);
  context_->metrics.observe_refresh(ledger_.spec().name, end - start, report.status.has_value());
  context_->metrics.records(ledger_.spec().name, report.received, report.settled);
  co_return report;
}

/// Marks all coverage as incomplete after a cycle that failed before it listed anything.
void Runner::invalidate_coverage(const Error& why) {
  if (why.code == Code::cancelled) return;
  const std::string reason = std::string(render(why.code)) + ": " + why.message;
  for (auto& line : coverage_) {
    line.complete = false;
    line.reasons.assign(1, reason);
  }
  for (auto& [name, line] : registration_lines_.lines) line = {false, reason};
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

Task<CycleReport> Runner::list(std::string cursor, std::chrono::milliseconds deadline) {
  Cycle one(context_, ledger_, *session_, ++run_);
  CycleReport out = co_await one.run(std::move(cursor), deadline);
  full_next_ = full_next_ || one.unconfirmed();
  left_out_ = left_out_ || one.left_out();
  if (out.status && !out.unchanged && session_->inner_listed() && !out.registrations.left_out) {
    one.retract_unmentioned();
    context_->sources->listed(ledger_.spec().name);
  }
  co_return out;
}

Task<CycleReport> Runner::cycle(bool full) {
  CycleReport report;
  const Status expired = co_await expire_decisions();
  report.status = co_await prepare();
  if (report.status) report.status = co_await check_identity();
  if (report.status && std::exchange(declarations_changed_, false)) {
    report.status = co_await ledger_.load_declared();
    declarations_changed_ = declarations_changed_ || !report.status;
  }
  if (!report.status) co_return report;
  const auto now = context_->clock.mono();
  const std::uint64_t plugin = plugin_changes_;
  if (left_out_ && can_admit(ledger_)) {
    full_next_ = true;
    left_out_ = false;
  }
  full = std::exchange(full_next_, false) || full || now - last_full_ > kFullEvery;
  const std::string cursor = full ? std::string() : ledger_.row().cursor;
  const auto deadline = cycle_deadline();
  report = co_await list(cursor, deadline);
  if (!report.status && report.status.error().code == Code::cursor_expired) {
    report = co_await list({}, deadline);
    full = true;
  }
  if (report.status) co_await discover(!report.unchanged);
  if (const Status settled = co_await persist_registrar(); report.status && !settled) report.status = settled;
  if (const Status asked = co_await write_claim_drift(); report.status && !asked) report.status = asked;
  // The plugin was upgraded meanwhile: the next cycle reads everything.
  if (plugin != plugin_changes_) co_return report;
  if (full && report.status) {
    if (last_full_ == Schedule::Clock::time_point{}) watch_due_.cancel();
    last_full_ = now;
    if (report.received >= kLongList) asio::post(context_->diff, release_free_memory);
  }
  // A cursor stands only for what was listed completely: after an incomplete run everything is read again.
  if (full || !report.unchanged) full_next_ = full_next_ || !report.complete();
  if (report.status && !expired) report.status = expired;
  co_return report;
}

Task<Status> Runner::load() {
  DRIFTD_CO_CHECK(co_await ledger_.load());
  const core::ResourceId id{"backend", ledger_.spec().name};
  const Index::Entry* pseudo = ledger_.index().find(id);
  identity_held_ = pseudo != nullptr && pseudo->open;
  const auto& notes = ledger_.row().notes;
  if (const auto in = notes.find(kRegistrarPlaceNote); in != notes.end()) registrar_place_ = in->second;
  if (const auto in = notes.find(kFoundIn); in != notes.end()) found_in_ = in->second;
  const Status claims = co_await load_claims();
  co_return claims;
}

Task<Status> Runner::check_identity() {
  const auto probed = co_await session_->health();
  if (!probed || probed->system_identity.empty()) co_return co_await check_missing_identity(probed);
  const core::ResourceId id{"backend", ledger_.spec().name};
  const std::string accepted = ledger_.row().system_identity, identity = probed->system_identity;
  identity_missing_ = identity_changed_ = false;
  if (identity == accepted && !identity_held_) co_return Status{};
  std::vector<core::ResourceId> ids(1, id);
  DRIFTD_CO_TRY(auto rows, co_await context_->store.load(ledger_.row().uid, std::move(ids)));
  core::Judgement judgement =
      core::judge_identity(ledger_.row().uid, rows.front(), accepted, identity, context_->clock.wall());
  const auto open = judgement.next.open;
  if (!judgement.transitions.empty() || rows.front().revision == 0) {
    DRIFTD_CO_CHECK(co_await ledger_.commit(std::move(rows.front()), std::move(judgement), "system identity"));
  }
  // An ignored identity is accepted. Only a pending or rejected one holds the backend.
  identity_held_ =
      std::any_of(open.begin(), open.end(), [](const auto& d) { return d.status != core::DriftStatus::ignored; });
  if (identity_held_) {
    co_return fail(Code::conflict, "another system answers at this endpoint (identity " + identity + ", accepted " +
                                       accepted + "): nothing is judged until drift " + open.front().id +
                                       " is decided");
  }
  CommitExtras extras;
  extras.row = ledger_.row();
  extras.row->system_identity = identity;
  const auto status = co_await ledger_.commit_extras(std::move(extras));
  co_return status;
}

std::chrono::milliseconds Runner::cycle_deadline() const {
  return std::max(kMinCycleDeadline, std::chrono::milliseconds(ledger_.spec().budgets.call));
}

/// Handles a system that does not report its identity. It may not be the accepted one, so nothing is judged (semantics
/// 3, ADR 0009). Returns the most specific error: a system that cannot be reached at all is down, denied or has a wrong
/// password.
Task<Status> Runner::check_missing_identity(Result<core::HealthReport> probed) {
  const std::string accepted = ledger_.row().system_identity;
  const bool read = session_->status().state != "discovered";  // otherwise there is only its source's report
  identity_missing_ = !accepted.empty() && read;
  if (!identity_held_ && !identity_missing_) co_return Status{};
  const std::string why = probed ? probed->reason : probed.error().message;
  Error missing{Code::unavailable, "the system at this endpoint does not say which one it is (accepted: " + accepted +
                                       "): nothing is judged until it does" + (why.empty() ? why : "; " + why)};
  if (probed && probed->state == core::HealthReport::State::up) co_return fail(std::move(missing));
  // A refresh may report the cause (no connection, a password, a right). Its records are not used.
  const auto failure = std::make_shared<FirstFailure>();
  core::RefreshRequest request;
  request.full = true;
  request.deadline = cycle_deadline();
  core::PageHandler handler = [failure](core::RecordPage page) { return note_cause(failure, std::move(page)); };
  const auto asked = co_await session_->refresh(std::move(request), std::move(handler));
  if (failure->cause) co_return fail(std::move(*failure->cause));
  if (!asked && !failure->stopped) co_return fail(asked.error());
  if (!probed) co_return fail(probed.error());
  co_return fail(why.empty() ? std::move(missing) : Error{Code::unavailable, why});
}

Task<void> Runner::reload(core::BackendSpec spec) {
  const auto self = shared_from_this();
  {
    const AsyncMutex::Guard held = co_await cycle_mutex_.lock();
    schedule_.set_interval(spec.interval);
    ledger_.reload(std::move(spec));
    full_next_ = true;
  }
  hint();
}

}  // namespace driftd::engine
