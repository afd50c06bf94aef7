// SPDX-License-Identifier: Apache-2.0
// A lane's loop: cursor, fetching, saving, starting and stopping. What becomes of an attempt: lane_attempt.cpp.
#include "delivery/lane.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/detached.hpp>

#include "base/log.hpp"

namespace driftd::delivery {
namespace {

constexpr int kPage = 512;
constexpr std::size_t kLoaded = 1024;       // events of a lane in memory
constexpr std::size_t kWindow = 10'000;     // with the exceptions, which are light
constexpr std::size_t kSaveAt = 128;        // settled events that make a save due
constexpr std::size_t kMostAtRisk = 256;    // duplicates after a kill (delivery.md, row "cursor")
constexpr Millis kSaveEvery{100};
constexpr Millis kStoreRetry{1'000};
constexpr std::size_t kLoadAtOnce = 64;
constexpr std::size_t kRestoreAtOnce = 256;

}  // namespace

Lane::Lane(std::shared_ptr<LaneContext> context, std::string name, std::string type, std::unique_ptr<core::Sink> sink)
    : context_(std::move(context)),
      name_(std::move(name)),
      type_(std::move(type)),
      sink_(std::move(sink)),
      policy_(sink_->policy()),
      schedule_(policy_, context_->settings.seed != 0 ? context_->settings.seed : std::random_device{}()),
      circuit_(policy_.forever, context_->settings.seed != 0 ? context_->settings.seed : std::random_device{}()),
      bell_(context_->core) {}

Task<void> Lane::run() {
  const auto self = shared_from_this();
  sink_->attach([weak = weak_from_this()] {
    if (const auto lane = weak.lock()) lane->endpoint_changed();
  });
  while (!stopping_ || (window_.in_flight() > 0 && now() < drain_until_)) {
    co_await step();
    co_await wait();
  }
  co_await finish();
}

void Lane::ring() {
  rung_ = true;
  exhausted_ = false;
  bell_.cancel();
}

void Lane::endpoint_changed() {
  circuit_.hurry(now());
  ring();
}

void Lane::stop() {
  if (stopping_) return;
  stopping_ = true;
  drain_until_ = now() + context_->settings.drain;
  ring();
}

Task<void> Lane::wait() {
  if (!rung_) {
    bell_.expires_at(next_time());
    co_await bell_.async_wait(asio::as_tuple(asio::use_awaitable));
  }
  rung_ = false;
}

Time Lane::next_time() const {
  const Time never = now() + std::chrono::hours(24);
  Time next = never;
  const auto sooner = [&next](Time at) { next = std::min(next, at); };
  if (next_try_ > now()) sooner(next_try_);
  if (circuit_.state() == Circuit::State::open) {
    sooner(circuit_.open_until());
  } else if (window_.next_due() && *window_.next_due() > now()) {
    sooner(*window_.next_due());
  }
  if (window_.dirty()) sooner(next_save_ > now() ? next_save_ : now() + kSaveEvery);
  if (started_) sooner(next_check_);
  if (replay_.next > now()) sooner(replay_.next);
  if (stopping_) sooner(drain_until_);
  return next;
}

Task<void> Lane::step() {
  if (now() < next_try_) co_return;
  if (!opened_) {
    const bool opened = co_await open_cursor();
    if (!opened) co_return;
  }
  circuit_.advance(now());
  if (rewind_to_ && window_.in_flight() == 0 && replaying_.empty()) co_await rewind();
  if (!started_ && !stopping_) co_await start_sink();
  const bool probing = circuit_.state() == Circuit::State::half_open && !checked_;
  const bool asked = circuit_.state() != Circuit::State::open && sink_->must_check();
  if (started_ && !stopping_ && !disabled_ && (now() >= next_check_ || probing || asked)) co_await check();
  co_await fetch();
  co_await load_due();
  send_ready();
  co_await fetch_replays();
  send_replays();
  if (must_save()) co_await save();
}

void Lane::refuse_to_stall(const std::string& doing, const Error& error) {
  last_error_ = doing + ": " + error.message;
  log::room("delivery").error("sink {}: {}; trying again in {} ms", name_, last_error_, kStoreRetry.count());
  next_try_ = now() + kStoreRetry;
}

Task<bool> Lane::open_cursor() {
  auto cursor = co_await context_->outbox.open_sink(name_);
  if (!cursor) {
    refuse_to_stall("open the cursor", cursor.error());
    co_return false;
  }
  window_ = Window(cursor->low_water);
  notes_ = cursor->notes;
  saved_notes_ = notes_;
  const auto since = notes_.find("failing_since_ns");
  if (since != notes_.end()) failing_since_ = std::strtoll(since->second.c_str(), nullptr, 10);
  opened_ = true;
  exhausted_ = false;
  co_await restore_exceptions(std::move(cursor->exceptions));
  co_return opened_;
}

Task<void> Lane::restore_exceptions(std::vector<core::DeliveryState> exceptions) {
  std::map<std::int64_t, core::DeliveryState> live;
  for (auto& state : exceptions) {
    if (state.dead) {
      window_.restore_dead(state.seq);
    } else {
      live.emplace(state.seq, std::move(state));
    }
  }
  while (!live.empty()) {
    std::vector<std::int64_t> seqs;
    for (const auto& [seq, state] : live) {
      if (seqs.size() < kRestoreAtOnce) seqs.push_back(seq);
    }
    auto events = co_await context_->outbox.fetch_exact(name_, seqs);
    if (!events) {
      refuse_to_stall("fetch the events that were failing", events.error());
      opened_ = false;
      co_return;
    }
    for (auto& event : *events) {
      const auto state = live.extract(event.stamp.seq);
      const auto wait = std::chrono::nanoseconds(std::max<Nanos>(0, state.mapped().next_ns - context_->clock.wall()));
      const Time due = now() + std::chrono::duration_cast<Time::duration>(wait);
      window_.restore(std::move(event), state.mapped(), due);
    }
    for (const auto seq : seqs) {
      if (live.erase(seq) != 0) lost(seq);
    }
  }
}

void Lane::lost(std::int64_t seq) {
  log::room("delivery").error("sink {}: event {} is no longer in the store", name_, seq);
  window_.forget(seq);
  tell("gap", "event " + std::to_string(seq) + " left the store before sink " + name_ + " had it",
       {{"sink", name_}, {"from", std::to_string(seq)}, {"to", std::to_string(seq)}});
}

Task<void> Lane::start_sink() {
  if (circuit_.state() == Circuit::State::open || disabled_) co_return;
  const Status started = co_await sink_->start();
  if (started) {
    started_ = true;
    co_return;
  }
  endpoint_failed({core::Attempt::Outcome::retry_sink, started.error().message, started.error().retry_after_ms});
}

Task<void> Lane::check() {
  next_check_ = now() + context_->settings.check_every;
  checked_ = true;
  const auto from = co_await sink_->check(notes_);
  if (!from) {
    endpoint_failed({core::Attempt::Outcome::retry_sink, from.error().message, from.error().retry_after_ms});
    co_return;
  }
  if (!*from) co_return;
  log::room("delivery").warn("sink {}: the receiver lost what it had acknowledged; sending again after event {}", name_,
                             **from);
  rewind_to_ = **from;
  if (window_.in_flight() == 0 && replaying_.empty()) co_await rewind();
}

Task<void> Lane::rewind() {
  const std::int64_t to = std::min(*rewind_to_, window_.low_water());
  core::SinkSettlement back{name_, to, {}, {}, notes_, window_.dropped()};
  const Status settled = co_await context_->outbox.settle(std::move(back));
  if (!settled) {
    refuse_to_stall("move the cursor back", settled.error());
    co_return;
  }
  rewind_to_.reset();
  opened_ = co_await open_cursor();
}

Task<void> Lane::fetch() {
  while (opened_ && !exhausted_ && !stopping_ && !rewind_to_ && window_.loaded() < kLoaded && window_.size() < kWindow) {
    exhausted_ = true;  // a ring() during the fetch undoes it
    auto page = co_await context_->outbox.fetch(name_, window_.fetched_to(), kPage);
    if (!page) {
      exhausted_ = false;
      refuse_to_stall("fetch events", page.error());
      co_return;
    }
    if (page->size() == static_cast<std::size_t>(kPage)) exhausted_ = false;
    for (auto& event : *page) window_.add(std::move(event));
  }
}

Task<void> Lane::load_due() {
  if (!opened_ || !may_send()) co_return;
  const auto seqs = window_.unloaded(now(), kLoadAtOnce);
  if (seqs.empty()) co_return;
  auto events = co_await context_->outbox.fetch_exact(name_, seqs);
  if (!events) {
    refuse_to_stall("fetch events to try again", events.error());
    co_return;
  }
  for (auto& event : *events) window_.load(std::move(event));
  for (const auto seq : seqs) {
    const auto* entry = window_.find(seq);
    if (entry != nullptr && !entry->loaded) lost(seq);
  }
}

bool Lane::may_send() const {
  if (!started_ || stopping_ || disabled_ || rewind_to_ || window_.at_risk() >= kMostAtRisk) return false;
  if (sink_->must_check()) return false;
  const std::size_t flying = window_.in_flight() + replaying_.size();
  if (circuit_.state() == Circuit::State::half_open) return flying == 0;
  return circuit_.state() == Circuit::State::closed && flying < static_cast<std::size_t>(policy_.max_in_flight);
}

bool Lane::must_save() const {
  if (!opened_ || telling_ != 0 || rewind_to_) return false;  // an agent event first, then the dead letter it tells of
  if (notes_ != saved_notes_) return true;
  return window_.dirty() && (window_.unsaved() >= kSaveAt || now() >= next_save_ || stopping_);
}

Task<void> Lane::save() {
  Window::Save save = window_.plan(now(), context_->clock.wall(), force_save_);
  next_save_ = now() + kSaveEvery;
  if (unflushed_) {
    unflushed_ = false;
    const Status flushed = co_await sink_->flush();
    if (!flushed) {
      rewind_to_ = window_.low_water();  // what was not flushed goes again
      endpoint_failed({core::Attempt::Outcome::retry_sink, flushed.error().message, 0});
      co_return;
    }
  }
  sink_->note(notes_, window_.settled_to());
  auto notes = notes_;
  save.settlement.sink = name_;
  if (notes != saved_notes_) save.settlement.notes = notes;
  const Status settled = co_await context_->outbox.settle(save.settlement);
  if (!settled) {
    window_.not_saved(save);
    refuse_to_stall("save the cursor", settled.error());
    co_return;
  }
  window_.saved(save);
  saved_notes_ = std::move(notes);
  force_save_ = window_.unsaved() >= kSaveAt;
  if (window_.unsaved() >= kSaveAt) rung_ = true;
}

Task<void> Lane::finish() {
  if (opened_ && !rewind_to_) co_await save();
  if (started_) co_await sink_->stop();
  ended_ = true;
}

core::SinkView Lane::view() const {
  core::SinkView view;
  view.name = name_;
  view.type = type_;
  view.low_water = window_.low_water();
  view.in_flight = static_cast<std::int64_t>(window_.in_flight());
  view.retrying = static_cast<std::int64_t>(window_.retrying());
  view.dead = static_cast<std::int64_t>(window_.dead().size());
  view.delivered = delivered_;
  view.last_error = last_error_;
  view.state = sink_->describe();
  if (circuit_.state() == Circuit::State::open) view.state = "circuit open: " + last_error_;
  if (disabled_) view.state = "disabled: " + last_error_;
  return view;
}

}  // namespace driftd::delivery
