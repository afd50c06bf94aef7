// SPDX-License-Identifier: Apache-2.0
// The loop of a runner over its parts, and the watch over that loop.
#include "delivery/sink_runner.hpp"

#include <boost/asio/as_tuple.hpp>
#include <cstdlib>

#include "base/fatal.hpp"
#include "base/log.hpp"

namespace driftd::delivery {
namespace {

constexpr std::chrono::seconds kFinish{5};  // for the last save and the stop of the sink, beyond `drain`
constexpr int kMaxIdle = 16;                // duties in a row that change nothing

/// A debug build aborts when an invariant is broken. A release build has logged and counted it, and goes on.
void broken_invariant() {
#ifdef DRIFTD_DEBUG
  std::abort();
#endif
}

unsigned seed_of(const SinkRun& run) {
  const unsigned seed = run.context->settings.seed;
  return seed != 0 ? seed : std::random_device{}();
}

}  // namespace

SinkRunner::SinkRunner(std::shared_ptr<SinkRunnerContext> context, std::string name, std::string type,
                       std::unique_ptr<core::Sink> sink)
    : run_{std::move(context), std::move(name), sink->policy(), [this] { wake(); }, false, {}},
      type_(std::move(type)),
      progress_(run_),
      cursor_(run_, progress_),
      endpoint_(run_, cursor_, std::move(sink), seed_of(run_)),
      live_(run_, cursor_, endpoint_, progress_, seed_of(run_)),
      replay_(run_, cursor_, endpoint_),
      wake_timer_(run_.context->core),
      finish_timer_(run_.context->core) {}

Task<void> SinkRunner::run() {
  const auto self = shared_from_this();
  endpoint_.attach([weak = weak_from_this()] {
    const auto runner = weak.lock();
    if (!runner) return;
    if (!runner->endpoint_.lost_unflushed()) runner->endpoint_.back();
    runner->wake();
  });
  while (true) {
    const Situation before = situation();
    const Agenda agenda = next_duty(before);
    if (agenda.duty == Duty::end) break;
    if (agenda.duty == Duty::sleep) {
      co_await sleep(agenda.until);
      continue;
    }
    if (agenda.duty == Duty::fetch || agenda.duty == Duty::save) {
      perform_beside(agenda.duty, before);
      continue;
    }
    doing_ = agenda.duty;
    co_await perform(agenda.duty);
    doing_ = Duty::sleep;
    note_effect(agenda.duty, before);
  }
  co_await finish();
}

void SinkRunner::note_effect(Duty duty, const Situation& before) {
  Situation after = situation();
  after.now = before.now;
  idle_ = after == before ? idle_ + 1 : 0;
  if (idle_ >= kMaxIdle) report_idle(duty);
}

void SinkRunner::perform_beside(Duty duty, Situation before) {
  under_way(duty) = true;
  asio::co_spawn(run_.context->core, run_beside(duty, before), fatal);
}

Task<void> SinkRunner::run_beside(Duty duty, Situation before) {
  const auto self = shared_from_this();
  const auto looks = cursor_.looks();
  co_await perform(duty);
  under_way(duty) = false;
  for (Situation next = situation(); duty == Duty::save && save_follows(next); next = situation()) {
    note_effect(duty, before);
    before = next;
    saving_ = true;
    wake();  // the save that is over made room to send in
    co_await perform(duty);
    saving_ = false;
  }
  const bool overtaken = duty == Duty::fetch && looks != cursor_.looks();
  if (overtaken) {
    idle_ = 0;  // it is due again because of a commit, and not because it changed nothing
  } else {
    note_effect(duty, before);
  }
  wake();
}

Situation SinkRunner::situation() const {
  Situation s;
  s.now = run_.now();
  s.stopping = run_.stopping;
  s.drain_until = drain_until_;
  s.in_flight = cursor_.window().in_flight() + replay_.in_flight();
  s.store = cursor_.store_situation();
  s.store.fetching = fetching_;
  s.store.rewinding = s.store.rewinding || endpoint_.lost_unflushed();
  s.endpoint = endpoint_.situation(s.now);
  s.waiting = cursor_.waiting_situation();
  s.save = cursor_.save_situation();
  s.save.useful = s.save.useful || replay_.unsaved();
  s.save.saving = saving_;
  s.replay = replay_.situation();
  return s;
}

Task<void> SinkRunner::perform(Duty duty) {
  switch (duty) {
    case Duty::open:
      co_await open();
      break;
    case Duty::rewind:
      if (!cursor_.rewinding()) endpoint_.give_up_unflushed();
      replay_.revert_notes();
      co_await cursor_.rewind();
      break;
    case Duty::start:
      co_await endpoint_.start();
      break;
    case Duty::check:
      co_await endpoint_.check();
      break;
    case Duty::fetch:
      co_await cursor_.fetch();
      break;
    case Duty::load:
      co_await cursor_.load_due();
      break;
    case Duty::send:
      send_ready();
      break;
    case Duty::plan_replay:
      resume_replay();
      break;
    case Duty::fetch_replay:
      co_await replay_.fetch();
      break;
    case Duty::send_replay:
      send_replay();
      break;
    case Duty::save:
      co_await save(false);
      break;
    case Duty::sleep:
    case Duty::end:
      break;
  }
}

Task<void> SinkRunner::open() {
  co_await cursor_.open();
  if (!cursor_.opened()) co_return;
  replay_.restore_notes();
  endpoint_.begin_again();
}

Task<void> SinkRunner::save(bool all) {
  core::SinkSettlement planned = cursor_.plan_save(all);
  endpoint_.write_notes();
  replay_.write_notes();
  Cursor::Save save = cursor_.begin_save(std::move(planned));
  const bool flushed = co_await endpoint_.flush();
  if (ended_) co_return;  // abandoned: another runner may have the sink's cursor by now
  co_await cursor_.finish_save(std::move(save), flushed);
}

void SinkRunner::send_ready() {
  while (may_send(situation())) {
    auto event = live_.take();
    if (!event) return;
    asio::co_spawn(run_.context->core, deliver(std::move(event)), fatal);
  }
}

Task<void> SinkRunner::deliver(std::shared_ptr<const core::StoredEvent> event) {
  const auto self = shared_from_this();
  co_await live_.deliver(std::move(event));
  wake();
}

void SinkRunner::resume_replay() {
  replay_.mark_planning();
  asio::co_spawn(run_.context->core, run_resumed_replay(), fatal);
}

Task<void> SinkRunner::run_resumed_replay() {
  const auto self = shared_from_this();
  co_await replay_.resume();
  wake();
}

void SinkRunner::send_replay() {
  auto item = replay_.take();
  if (item) asio::co_spawn(run_.context->core, deliver_replay(std::move(*item)), fatal);
}

Task<void> SinkRunner::deliver_replay(ReplayQueue::Item item) {
  const auto self = shared_from_this();
  co_await replay_.deliver(std::move(item));
  wake();
}

Task<void> SinkRunner::finish() {
  while (fetching_ || saving_) co_await wait_for_wake();
  if (ended_) co_return;
  if (cursor_.opened() && !cursor_.rewinding()) {
    saving_ = true;
    co_await save(true);
    saving_ = false;
  }
  while (replay_.planning()) co_await wait_for_wake();
  if (ended_) co_return;
  co_await endpoint_.stop();
  if (ended_) co_return;
  wound_up_ = ended_ = true;
  finish_timer_.cancel();
  cursor_.end_waits();
}

/// Its own coroutine: the loop itself may wait for a start or a check that does not return.
Task<void> SinkRunner::give_up_when_late() {
  const auto self = shared_from_this();
  while (!ended_ && run_.now() < finish_by_) {
    finish_timer_.expires_at(finish_by_);
    co_await finish_timer_.async_wait(asio::as_tuple(asio::use_awaitable));
  }
  if (ended_) co_return;
  ended_ = true;
  cursor_.end_waits();
  const Duty step = saving_ ? Duty::save : fetching_ ? Duty::fetch : doing_;
  log::room("delivery")
      .error(
          "sink {}: its last step ({}) did not end in time; what it had not saved is sent again after the next start",
          run_.name, step == Duty::sleep ? "stop the sink" : render(step));
}

Task<void> SinkRunner::wait_for_wake() {
  wake_timer_.expires_at(Time::max());
  co_await wake_timer_.async_wait(asio::as_tuple(asio::use_awaitable));
}

Task<void> SinkRunner::sleep(Time until) {
  asleep_until_ = until;
  wake_timer_.expires_at(until);
  co_await wake_timer_.async_wait(asio::as_tuple(asio::use_awaitable));
  asleep_until_.reset();
}

void SinkRunner::wake() {
  asleep_until_.reset();  // it now waits for the core thread and no longer for the timer
  wake_timer_.cancel();
}

void SinkRunner::wake_and_fetch() {
  cursor_.look_for_new();
  wake();
}

void SinkRunner::stop(Millis drain) {
  if (run_.stopping) return;
  run_.stopping = true;
  drain_until_ = run_.now() + drain;
  finish_by_ = drain_until_ + kFinish;
  asio::co_spawn(run_.context->core, give_up_when_late(), fatal);
  cursor_.end_waits();
  wake_and_fetch();
}

Task<void> SinkRunner::former_secrets_unused() {
  const auto self = shared_from_this();
  co_await endpoint_.former_secrets_unused();
}

Task<Result<std::int64_t>> SinkRunner::replay(core::Control::Replay request) {
  const auto self = shared_from_this();
  auto count = co_await replay_.begin(std::move(request));
  wake();
  co_return count;
}

Task<Result<std::int64_t>> SinkRunner::dead_letter(std::string verb, std::vector<std::int64_t> seqs) {
  const auto self = shared_from_this();
  auto count = co_await cursor_.dead_letter(std::move(verb), std::move(seqs));
  wake_and_fetch();  // also after an error: some of them may be due
  co_return count;
}

/// Reports a duty that is due again and again and changes nothing, and pauses: it would keep the core thread busy for
/// ever.
void SinkRunner::report_idle(Duty duty) {
  idle_ = 0;
  ++missed_wakeups_;
  cursor_.pause();
  log::room("delivery")
      .error(
          "sink {}: it is due to {}, and that changes nothing; this is a defect of driftd, please "
          "report it; trying again in {} ms",
          run_.name, render(duty), kStoreRetry.count());
  broken_invariant();
}

std::string SinkRunner::why_stalled() const {
  const Window& window = cursor_.window();
  if (endpoint_.state(run_.now()) == EndpointState::disabled) return "it is disabled: " + endpoint_.why_paused();
  if (cursor_.waits_for_store()) return run_.last_error;
  if (endpoint_.fails()) return "its endpoint fails: " + endpoint_.why_paused();
  if (window.in_flight() != 0) return std::to_string(window.in_flight()) + " of them are under way without an answer";
  if (cursor_.at_exception_limit()) return cursor_.exception_limit_text();
  if (window.retrying() != 0) return "they wait for their next attempt: " + run_.last_error;
  for (const Duty duty : {doing_, fetching_ ? Duty::fetch : Duty::sleep, saving_ ? Duty::save : Duty::sleep}) {
    if (duty != Duty::sleep) return "its current step (" + std::string(render(duty)) + ") has not ended";
  }
  return "no reason is known; this is a defect of driftd, please report it";
}

void SinkRunner::watch() {
  if (ended_) return;
  if (run_.now() >= finish_by_) finish_timer_.cancel();
  report_stall();
  if (asleep_until_) wake_if_due();
}

void SinkRunner::report_stall() {
  if (progress_.must_report_limit(cursor_.window().exceptions())) {
    log::room("delivery").error("sink {}: {}", run_.name, cursor_.exception_limit_text());
  }
  const bool has_work = cursor_.has_work();
  if (!progress_.must_report_stall(has_work)) return;
  log::room("delivery")
      .error("sink {}: {} events wait and none was delivered for {:.0f} s: {}", run_.name, cursor_.window().size(),
             progress_.stalled_seconds(has_work), why_stalled());
}

void SinkRunner::wake_if_due() {
  const Agenda agenda = next_duty(situation());
  const bool due = agenda.duty != Duty::sleep || agenda.until < *asleep_until_;
  const bool timer_late = run_.now() >= *asleep_until_;
  // the threads of the sink's library set must_check() or a loss a moment before the runner is woken
  const bool by_sink = endpoint_.asks_for_check() || endpoint_.lost_unflushed();
  if (due && !timer_late && !by_sink) {
    ++missed_wakeups_;
    log::room("delivery")
        .error("sink {}: it slept though it is due to {}; this is a defect of driftd, please report it", run_.name,
               render(agenda.duty));
    broken_invariant();
  }
  if (due || timer_late) wake();
}

core::SinkView SinkRunner::view() const {
  const Window& window = cursor_.window();
  core::SinkView view;
  view.name = run_.name;
  view.type = type_;
  view.low_water = window.low_water();
  view.in_flight = static_cast<std::int64_t>(window.in_flight());
  view.retrying = static_cast<std::int64_t>(window.retrying());
  view.dead = static_cast<std::int64_t>(window.dead().size());
  view.delivered = endpoint_.delivered_count();
  view.waiting = static_cast<std::int64_t>(window.size());
  view.stalled_seconds = progress_.stalled_seconds(cursor_.has_work());
  view.missed_wakeups = missed_wakeups_;
  const bool disabled = endpoint_.state(run_.now()) == EndpointState::disabled;
  view.state = endpoint_.describe();
  view.paused_until_ns = endpoint_.paused_until();
  view.last_error = disabled ? endpoint_.why_paused() : run_.last_error;
  if (!disabled && cursor_.at_exception_limit()) view.state += "; " + cursor_.exception_limit_text();
  if (progress_.stall_reported()) {
    view.state += "; no progress for " + std::to_string(static_cast<long>(view.stalled_seconds)) + " s over " +
                  std::to_string(window.size()) + " waiting events";
  }
  return view;
}

}  // namespace driftd::delivery
