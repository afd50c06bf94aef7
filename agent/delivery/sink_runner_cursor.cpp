// SPDX-License-Identifier: Apache-2.0
// A SinkRunner's access to the store: opening, fetching, saving and moving back its cursor; and the start and check of
// its sink.
#include <boost/asio/as_tuple.hpp>

#include "base/log.hpp"
#include "delivery/answer.hpp"
#include "delivery/sink_runner.hpp"

namespace driftd::delivery {
namespace {

constexpr int kPage = 512;
constexpr Millis kSaveEvery{100};
constexpr std::size_t kLoadAtOnce = 64;
constexpr std::size_t kRestoreAtOnce = 256;

}  // namespace

Task<void> SinkRunner::open_cursor() {
  opened_ = false;
  auto cursor = co_await context_->outbox.open_sink(name_);
  if (!cursor) {
    retry_store_later("open the cursor", cursor.error());
    co_return;
  }
  window_ = Window(cursor->low_water);
  notes_ = cursor->notes;
  saved_notes_ = notes_;
  replay_.restore(notes_);
  outage_.restore(notes_);
  exhausted_ = false;
  co_await restore_exceptions(std::move(cursor->exceptions));
}

/// Returns the wait of an event that failed before a restart. A wait longer than any schedule means that the clock was
/// years behind when the agent started (no battery, no NTP yet): such an event is due now.
Millis SinkRunner::wait_of(const core::DeliveryState& state) const {
  const auto wait =
      std::chrono::duration_cast<Millis>(std::chrono::nanoseconds(state.next_ns - context_->clock.wall()));
  return wait > kLongestWait ? Millis(0) : std::max(wait, Millis(0));
}

Task<void> SinkRunner::restore_exceptions(std::vector<core::DeliveryState> exceptions) {
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
      if (seqs.size() == kRestoreAtOnce) break;
      seqs.push_back(seq);
    }
    auto events = co_await context_->outbox.fetch_exact(name_, seqs);
    if (!events) {
      retry_store_later("fetch the events that were failing", events.error());
      co_return;
    }
    if (stopping_) co_return;  // there may be very many events; a runner that is not open has nothing to save
    seqs = covered_seqs(std::move(seqs), *events);
    for (auto& event : *events) {
      const auto state = live.extract(event.stamp.seq);
      window_.restore(std::move(event), state.mapped(), now() + wait_of(state.mapped()), now());
    }
    std::erase_if(seqs, [&live](std::int64_t seq) { return live.erase(seq) == 0; });
    lost(seqs);
  }
  opened_ = true;
}

/// Reports all of them in one agent event: there may be very many.
void SinkRunner::lost(const std::vector<std::int64_t>& seqs) {
  if (seqs.empty()) return;
  for (const auto seq : seqs) window_.forget(seq);
  progress();
  const std::string from = std::to_string(seqs.front()), to = std::to_string(seqs.back()),
                    count = std::to_string(seqs.size());
  const std::string what = seqs.size() == 1 ? "event " + from : count + " events (from " + from + " to " + to + ")";
  log::room("delivery").error("sink {}: {} left the store before it had them", name_, what);
  publish_agent_event("gap", what + " left the store before sink " + name_ + " had it",
                      {{"sink", name_}, {"from", from}, {"to", to}, {"count", count}});
}

Task<void> SinkRunner::start_sink() {
  const Status started = co_await sink_->start();
  if (started) {
    started_ = true;
    co_return;
  }
  endpoint_failed({core::Attempt::Outcome::retry_sink, started.error().message, started.error().retry_after_ms});
}

Task<void> SinkRunner::check() {
  next_check_ = now() + context_->settings.check_every;
  checked_ = true;
  const auto from = co_await sink_->check(notes_);
  // counted from its end: checks that take long must not follow each other without a pause
  next_check_ = now() + context_->settings.check_every;
  if (!from) {
    endpoint_failed({core::Attempt::Outcome::retry_sink, from.error().message, from.error().retry_after_ms});
    co_return;
  }
  if (*from) {
    log::room("delivery")
        .warn("sink {}: the receiver lost what it had acknowledged; sending again after event {}", name_, **from);
    rewind_to_ = **from;
    co_return;
  }
  if (sink_->must_check())
    endpoint_failed({core::Attempt::Outcome::retry_sink, "the connection changed during its check", 0});
}

Task<void> SinkRunner::rewind() {
  core::SinkSettlement back;
  back.sink = name_;
  back.low_water = std::min(*rewind_to_, window_.low_water());
  back.upsert = window_.unsaved_dead();
  back.notes = notes_;
  back.dropped = window_.dropped();
  back.events = unsaved_agent_events_;
  const std::size_t event_count = unsaved_agent_events_.size();
  const Status settled = co_await context_->outbox.settle(std::move(back));
  if (!settled) {
    retry_store_later("move the cursor back", settled.error());
    co_return;
  }
  unsaved_agent_events_.erase(unsaved_agent_events_.begin(),
                              unsaved_agent_events_.begin() + static_cast<std::ptrdiff_t>(event_count));
  rewind_to_.reset();
  opened_ = false;
  if (event_count != 0) context_->wake_all();
}

Task<void> SinkRunner::fetch() {
  exhausted_ = true;  // reset by a wake_and_fetch() during the fetch
  auto page = co_await context_->outbox.fetch(name_, window_.fetched_to(), kPage);
  if (!page) {
    exhausted_ = false;
    retry_store_later("fetch events", page.error());
    co_return;
  }
  if (page->size() == static_cast<std::size_t>(kPage) || cut_by_size(*page)) exhausted_ = false;
  for (auto& event : *page) window_.add(std::move(event));
}

Task<void> SinkRunner::load_due() {
  auto seqs = window_.unloaded(now(), kLoadAtOnce);
  auto events = co_await context_->outbox.fetch_exact(name_, seqs);
  if (!events) {
    retry_store_later("fetch events to try again", events.error());
    co_return;
  }
  seqs = covered_seqs(std::move(seqs), *events);
  for (auto& event : *events) window_.load(std::move(event));
  std::erase_if(seqs, [this](std::int64_t seq) {
    const auto* entry = window_.find(seq);
    return entry == nullptr || entry->loaded();
  });
  lost(seqs);
}

/// Returns false if the flush failed: the events that were not flushed will be sent again.
Task<bool> SinkRunner::flush() {
  if (!std::exchange(unflushed_, false)) co_return true;
  const Status flushed = co_await sink_->flush();
  if (flushed) co_return true;
  rewind_to_ = window_.low_water();
  endpoint_failed({core::Attempt::Outcome::retry_sink, flushed.error().message, 0});
  co_return false;
}

Task<void> SinkRunner::save(bool all) {
  core::SinkSettlement settlement = window_.plan(now(), context_->clock.wall(), all);
  sink_->note(notes_, window_.settled_to());
  replay_.note(notes_);
  const auto notes = notes_;
  settlement.sink = name_;
  if (notes != saved_notes_) settlement.notes = notes;
  settlement.events = unsaved_agent_events_;
  next_save_ = now() + kSaveEvery;
  save_now_ = unsaved_replay_ = false;
  const bool flushed = co_await flush();
  Status settled;
  if (flushed) settled = co_await context_->outbox.settle(settlement);
  if (!flushed || !settled) {
    window_.not_saved(settlement);
    ++saves_failed_;
    saved_.cancel();
    if (!settled) retry_store_later("save the cursor", settled.error());
    co_return;
  }
  window_.saved(settlement);
  saved_notes_ = notes;
  unsaved_agent_events_.erase(unsaved_agent_events_.begin(),
                              unsaved_agent_events_.begin() + static_cast<std::ptrdiff_t>(settlement.events.size()));
  saved_.cancel();
  if (!settlement.events.empty()) context_->wake_all();
}

Task<void> SinkRunner::finish() {
  if (opened_ && !rewind_to_) co_await save(true);
  while (planning_) {
    wake_timer_.expires_at(Time::max());
    co_await wake_timer_.async_wait(asio::as_tuple(asio::use_awaitable));
  }
  if (started_) co_await sink_->stop();
  ended_ = true;
  saved_.cancel();
}

}  // namespace driftd::delivery
