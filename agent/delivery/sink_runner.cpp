// SPDX-License-Identifier: Apache-2.0
// The loop of a SinkRunner and its watch. Its cursor is in sink_runner_cursor.cpp, the outcome of attempts in
// sink_runner_attempt.cpp.
#include "delivery/sink_runner.hpp"

#include <boost/asio/as_tuple.hpp>
#include <cstdlib>

#include "base/fatal.hpp"
#include "base/log.hpp"

namespace driftd::delivery {
namespace {

constexpr Millis kStoreRetry{1'000};
constexpr int kIdle = 16;  // maximum of duties in a row that change nothing

/// A debug build aborts when an invariant is broken. A release build has logged and counted it, and goes on.
void broken_invariant() {
#ifdef DRIFTD_DEBUG
  std::abort();
#endif
}

unsigned seed_of(const SinkRunnerContext& context) {
  return context.settings.seed != 0 ? context.settings.seed : std::random_device{}();
}

}  // namespace

SinkRunner::SinkRunner(std::shared_ptr<SinkRunnerContext> context, std::string name, std::string type,
                       std::unique_ptr<core::Sink> sink)
    : context_(std::move(context)),
      name_(std::move(name)),
      type_(std::move(type)),
      sink_(std::move(sink)),
      policy_(sink_->policy()),
      schedule_(policy_, seed_of(*context_)),
      endpoint_(policy_.forever, seed_of(*context_)),
      wake_timer_(context_->core),
      saved_(context_->core) {}

Task<void> SinkRunner::run() {
  const auto self = shared_from_this();
  sink_->attach([weak = weak_from_this()] {
    if (const auto runner = weak.lock()) runner->endpoint_changed();
  });
  while (true) {
    const Situation before = situation();
    const Agenda agenda = next_duty(before);
    if (agenda.duty == Duty::end) break;
    if (agenda.duty == Duty::sleep) {
      co_await sleep(agenda.until);
      continue;
    }
    doing_ = agenda.duty;
    co_await perform(agenda.duty);
    doing_ = Duty::sleep;
    Situation after = situation();
    after.now = before.now;
    idle_ = after == before ? idle_ + 1 : 0;
    if (idle_ >= kIdle) idle(agenda.duty);
  }
  co_await finish();
}

EndpointState SinkRunner::endpoint_state() const {
  if (disabled_) return EndpointState::disabled;
  const Circuit::State circuit = endpoint_.state(now());
  if (circuit == Circuit::State::open) return EndpointState::circuit_open;
  if (!started_) return EndpointState::not_started;
  const bool half_open = circuit == Circuit::State::half_open;
  if (sink_->must_check() || (half_open && !checked_)) return EndpointState::unchecked;
  return half_open ? EndpointState::half_open : EndpointState::ready;
}

Situation SinkRunner::situation() const {
  Situation s;
  s.now = now();
  s.stopping = stopping_;
  s.drain_until = drain_until_;
  s.in_flight = window_.in_flight() + replay_.in_flight();
  s.store = {opened_, rewind_to_.has_value(), exhausted_, store_at_};
  s.endpoint = {endpoint_state(), endpoint_.open_until(), next_check_, static_cast<std::size_t>(policy_.max_in_flight)};
  s.waiting.loaded = window_.loaded();
  s.waiting.loaded_bytes = window_.loaded_bytes();
  s.waiting.plain = window_.plain();
  s.waiting.next_loaded = window_.next_loaded();
  s.waiting.next_unloaded = window_.next_unloaded();
  s.waiting.at_exception_limit = at_exception_limit();
  s.waiting.behind = window_.behind();
  const bool new_notes = notes_ != saved_notes_;
  s.save.useful = window_.worth_saving() || new_notes || unsaved_replay_ || !unsaved_agent_events_.empty();
  s.save.urgent = save_now_ || new_notes;
  s.save.at = next_save_;
  s.save.unsaved = window_.unsaved();
  s.save.unwritten = window_.unwritten();
  s.save.at_risk = window_.at_risk();
  s.replay.unplanned = replay_.active() && !replay_.planned() && !planning_;
  s.replay.unfetched = replay_.has_unfetched();
  s.replay.ready = replay_.ready();
  s.replay.bytes = replay_.bytes();
  s.replay.next = replay_.next([this](const std::string& key) { return !window_.busy(key); });
  return s;
}

Task<void> SinkRunner::perform(Duty duty) {
  switch (duty) {
    case Duty::open:
      co_await open_cursor();
      break;
    case Duty::rewind:
      co_await rewind();
      break;
    case Duty::start:
      co_await start_sink();
      break;
    case Duty::check:
      co_await check();
      break;
    case Duty::fetch:
      co_await fetch();
      break;
    case Duty::load:
      co_await load_due();
      break;
    case Duty::send:
      send_ready();
      break;
    case Duty::plan_replay:
      planning_ = true;
      asio::co_spawn(context_->core, resume_replay(), fatal);
      break;
    case Duty::fetch_replay:
      co_await fetch_replays();
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

Task<void> SinkRunner::sleep(Time until) {
  asleep_until_ = until;
  wake_timer_.expires_at(until);
  co_await wake_timer_.async_wait(asio::as_tuple(asio::use_awaitable));
  asleep_until_.reset();
}

/// Reports a duty that is due again and again and changes nothing, and pauses: it would keep the core thread busy for
/// ever.
void SinkRunner::idle(Duty duty) {
  idle_ = 0;
  ++missed_wakeups_;
  store_at_ = now() + kStoreRetry;
  log::room("delivery")
      .error(
          "sink {}: it is due to {}, and that changes nothing; this is a defect of driftd, please "
          "report it; trying again in {} ms",
          name_, render(duty), kStoreRetry.count());
  broken_invariant();
}

void SinkRunner::wake() {
  asleep_until_.reset();  // it now waits for the core thread and no longer for the timer
  wake_timer_.cancel();
}

void SinkRunner::wake_and_fetch() {
  exhausted_ = false;
  wake();
}

void SinkRunner::endpoint_changed() {
  endpoint_.back(now());
  wake();
}

void SinkRunner::stop() {
  if (stopping_) return;
  stopping_ = true;
  drain_until_ = now() + context_->settings.drain;
  saved_.cancel();
  wake_and_fetch();
}

void SinkRunner::retry_store_later(const std::string& doing, const Error& error) {
  last_error_ = doing + ": " + error.message;
  log::room("delivery").error("sink {}: {}; trying again in {} ms", name_, last_error_, kStoreRetry.count());
  store_at_ = now() + kStoreRetry;
}

void SinkRunner::progress() {
  waiting_since_.reset();
  if (!std::exchange(stall_reported_, false)) return;
  log::room("delivery").info("sink {}: it makes progress again", name_);
}

double SinkRunner::stalled_seconds() const {
  if (!has_work() || !waiting_since_) return 0;
  return std::chrono::duration<double>(now() - *waiting_since_).count();
}

std::string SinkRunner::why_stalled() const {
  if (disabled_) return "it is disabled: " + last_error_;
  if (now() < store_at_) return last_error_;
  if (!started_ || endpoint_.state(now()) != Circuit::State::closed) return "its endpoint fails: " + last_error_;
  if (window_.in_flight() != 0) return std::to_string(window_.in_flight()) + " of them are under way without an answer";
  if (at_exception_limit()) return exception_limit_text();
  if (window_.retrying() != 0) return "they wait for their next attempt: " + last_error_;
  if (doing_ != Duty::sleep) return "its current step (" + std::string(render(doing_)) + ") has not ended";
  return "no reason is known; this is a defect of driftd, please report it";
}

std::string SinkRunner::exception_limit_text() const {
  return std::to_string(window_.exceptions()) +
         " events wait for their next attempt or behind one that does, as many as a " +
         "sink may hold: it takes nothing new; it goes on when the receiver takes what it refuses now (" + last_error_ +
         ")";
}

/// Logs an error each time the limit is reached, and again only after the number fell below half of it.
void SinkRunner::report_exception_limit() {
  if (!at_exception_limit()) {
    limit_reported_ = limit_reported_ && window_.exceptions() >= context_->settings.max_exceptions / 2;
  } else if (!std::exchange(limit_reported_, true)) {
    log::room("delivery").error("sink {}: {}", name_, exception_limit_text());
  }
}

void SinkRunner::watch() {
  if (ended_) return;
  report_exception_limit();
  if (!has_work()) {
    waiting_since_.reset();
    stall_reported_ = false;
  } else if (!waiting_since_) {
    waiting_since_ = now();
  }
  if (!stall_reported_ &&
      stalled_seconds() >= std::chrono::duration<double>(context_->settings.stalled_after).count()) {
    stall_reported_ = true;
    log::room("delivery")
        .error("sink {}: {} events wait and none was delivered for {:.0f} s: {}", name_, window_.size(),
               stalled_seconds(), why_stalled());
  }
  if (!asleep_until_) return;
  const Agenda agenda = next_duty(situation());
  const bool due = agenda.duty != Duty::sleep || agenda.until < *asleep_until_;
  const bool timer_late = now() >= *asleep_until_;
  // the threads of the sink's library set must_check() a moment before the runner is woken
  const bool by_sink = started_ && sink_->must_check();
  const bool missed = due && !timer_late && !by_sink;
  if (missed) {
    ++missed_wakeups_;
    log::room("delivery")
        .error("sink {}: it slept though it is due to {}; this is a defect of driftd, please report it", name_,
               render(agenda.duty));
    broken_invariant();
  }
  if (due || timer_late) wake();
}

core::SinkView SinkRunner::view() const {
  core::SinkView view;
  view.name = name_;
  view.type = type_;
  view.low_water = window_.low_water();
  view.in_flight = static_cast<std::int64_t>(window_.in_flight());
  view.retrying = static_cast<std::int64_t>(window_.retrying());
  view.dead = static_cast<std::int64_t>(window_.dead().size());
  view.delivered = delivered_;
  view.last_error = last_error_;
  view.waiting = static_cast<std::int64_t>(window_.size());
  view.stalled_seconds = stalled_seconds();
  view.missed_wakeups = missed_wakeups_;
  view.state = sink_->describe();
  if (endpoint_.state(now()) == Circuit::State::open) view.state = "circuit open: " + last_error_;
  if (at_exception_limit()) view.state += "; " + exception_limit_text();
  if (disabled_) view.state = "disabled: " + last_error_;
  if (stall_reported_) {
    view.state += "; no progress for " + std::to_string(static_cast<long>(view.stalled_seconds)) + " s over " +
                  std::to_string(window_.size()) + " waiting events";
  }
  return view;
}

}  // namespace driftd::delivery
