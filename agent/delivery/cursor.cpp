// SPDX-License-Identifier: Apache-2.0
#include "delivery/cursor.hpp"

#include <boost/asio/as_tuple.hpp>

#include "base/log.hpp"
#include "delivery/answer.hpp"
#include "delivery/progress_watch.hpp"

namespace driftd::delivery {
namespace {

constexpr int kPage = 512;
constexpr Millis kSaveEvery{100};
constexpr Millis kSaveSoon{100};
constexpr std::size_t kLoadAtOnce = 64;
constexpr std::size_t kRestoreAtOnce = 256;
constexpr std::size_t kRequeueAtOnce = 512;

}  // namespace

Cursor::Cursor(SinkRun& run, ProgressWatch& progress)
    : run_(run),
      progress_(progress),
      saved_(run.context->core, Time::max()) {}

StoreSituation Cursor::store_situation() const {
  StoreSituation out;
  out.opened = opened_;
  out.rewinding = rewinding();
  out.exhausted = exhausted_;
  out.retry_at = retry_at_;
  return out;
}

WaitingSituation Cursor::waiting_situation() const {
  WaitingSituation out;
  out.loaded = window_.loaded();
  out.loaded_bytes = window_.loaded_bytes();
  out.plain = window_.plain();
  out.next_loaded = window_.next_loaded();
  out.next_unloaded = window_.next_unloaded();
  out.at_exception_limit = at_exception_limit();
  out.behind = window_.behind();
  return out;
}

SaveSituation Cursor::save_situation() const {
  const bool new_notes = notes_ != saved_notes_;
  SaveSituation out;
  out.useful = window_.worth_saving() || new_notes || !unsaved_events_.empty();
  out.urgent = save_now_ || new_notes;
  out.at = next_save_;
  out.unsaved = window_.unsaved();
  out.unwritten = window_.unwritten();
  out.at_risk = window_.at_risk();
  return out;
}

std::string Cursor::exception_limit_text() const {
  return std::to_string(window_.exceptions()) +
         " events wait for their next attempt or behind one that does, as many as a " +
         "sink may hold: it takes nothing new; it goes on when the receiver takes what it refuses now (" +
         run_.last_error + ")";
}

void Cursor::pause() { retry_at_ = run_.now() + kStoreRetry; }

void Cursor::retry_later(const std::string& doing, const Error& error) {
  run_.last_error = doing + ": " + error.message;
  log::room("delivery").error("sink {}: {}; trying again in {} ms", run_.name, run_.last_error, kStoreRetry.count());
  pause();
}

void Cursor::save_soon() {
  if (!window_.worth_saving()) next_save_ = run_.now() + kSaveSoon;
}

Task<void> Cursor::open() {
  opened_ = false;
  auto cursor = co_await run_.context->outbox.open_sink(run_.name);
  if (!cursor) {
    retry_later("open the cursor", cursor.error());
    co_return;
  }
  window_ = Window(cursor->low_water);
  ++openings_;
  end_waits();
  notes_ = cursor->notes;
  saved_notes_ = notes_;
  exhausted_ = false;
  co_await restore_exceptions(std::move(cursor->exceptions));
}

/// Returns the wait of an event that failed before a restart. A wait longer than any schedule means that the clock was
/// years behind when the agent started (no battery, no NTP yet): such an event is due now.
Millis Cursor::wait_of(const core::DeliveryState& state) const {
  const auto wait = std::chrono::duration_cast<Millis>(std::chrono::nanoseconds(state.next_ns - run_.wall()));
  return wait > kLongestWait ? Millis(0) : std::max(wait, Millis(0));
}

Task<void> Cursor::restore_exceptions(std::vector<core::DeliveryState> exceptions) {
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
    auto events = co_await run_.context->outbox.fetch_exact(run_.name, seqs);
    if (!events) {
      retry_later("fetch the events that were failing", events.error());
      co_return;
    }
    if (run_.stopping) co_return;  // there may be very many events; a runner that is not open has nothing to save
    seqs = covered_seqs(std::move(seqs), *events);
    for (auto& event : *events) {
      const auto state = live.extract(event.stamp.seq);
      window_.restore(std::move(event), state.mapped(), run_.now() + wait_of(state.mapped()), run_.now());
    }
    std::erase_if(seqs, [&live](std::int64_t seq) { return live.erase(seq) == 0; });
    lost(seqs);
  }
  opened_ = true;
}

/// Only logs it: whoever takes an event from the store (retention, a removal, damage) writes a `gap` or `corrupt` event
/// in the same transaction, and a second one would tell receivers of a loss that there was not.
void Cursor::lost(const std::vector<std::int64_t>& seqs) {
  if (seqs.empty()) return;
  for (const auto seq : seqs) window_.forget(seq);
  progress_.progressed();
  const std::string from = std::to_string(seqs.front()), to = std::to_string(seqs.back()),
                    count = std::to_string(seqs.size());
  const std::string what = seqs.size() == 1 ? "event " + from : count + " events (from " + from + " to " + to + ")";
  log::room("delivery").error("sink {}: {} left the store before it had them", run_.name, what);
}

Task<void> Cursor::fetch() {
  exhausted_ = true;  // reset by a look_for_new() during the fetch
  auto page = co_await run_.context->outbox.fetch(run_.name, window_.fetched_to(), kPage);
  if (!page) {
    exhausted_ = false;
    retry_later("fetch events", page.error());
    co_return;
  }
  if (page->size() == static_cast<std::size_t>(kPage) || cut_by_size(*page)) exhausted_ = false;
  for (auto& event : *page) window_.add(std::move(event));
}

Task<void> Cursor::load_due() {
  auto seqs = window_.unloaded(run_.now(), kLoadAtOnce);
  auto events = co_await run_.context->outbox.fetch_exact(run_.name, seqs);
  if (!events) {
    retry_later("fetch events to try again", events.error());
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

void Cursor::forget_published(std::size_t count) {
  unsaved_events_.erase(unsaved_events_.begin(), unsaved_events_.begin() + static_cast<std::ptrdiff_t>(count));
}

void Cursor::revert_note(const std::string& name) {
  notes_.erase(name);
  const auto stored = saved_notes_.find(name);
  if (stored != saved_notes_.end()) notes_.insert(*stored);
}

Task<void> Cursor::rewind() {
  core::SinkSettlement back;
  back.sink = run_.name;
  back.low_water = std::min(*rewind_to_, window_.low_water());
  back.upsert = window_.unsaved_dead();
  back.notes = notes_;
  back.dropped = window_.dropped();
  back.events = unsaved_events_;
  const std::size_t event_count = unsaved_events_.size();
  const Status settled = co_await run_.context->outbox.settle(std::move(back));
  if (!settled) {
    retry_later("move the cursor back", settled.error());
    co_return;
  }
  forget_published(event_count);
  rewind_to_.reset();
  opened_ = false;
  run_.context->wake_all();  // for these events, and for a `gap` of the store
}

core::SinkSettlement Cursor::plan_save(bool all) {
  core::SinkSettlement plan = window_.plan(run_.now(), run_.wall(), all);
  plan.durable = all;
  return plan;
}

Cursor::Save Cursor::begin_save(core::SinkSettlement settlement) {
  settlement.sink = run_.name;
  if (notes_ != saved_notes_) settlement.notes = notes_;
  settlement.events = unsaved_events_;
  if (save_now_ || !settlement.upsert.empty() || !settlement.dropped.empty() || !settlement.events.empty())
    settlement.durable = true;
  next_save_ = run_.now() + kSaveEvery;
  save_now_ = false;
  return {std::move(settlement), notes_, ++saves_};
}

Task<void> Cursor::finish_save(Save save, bool flushed) {
  Status settled;
  if (flushed) settled = co_await run_.context->outbox.settle(save.settlement);
  if (!flushed || !settled) {
    window_.not_saved(save.settlement);
    ++failed_saves_;
    end_waits();
    if (!settled) retry_later("save the cursor", settled.error());
    co_return;
  }
  window_.saved(save.settlement);
  stored_save_ = save.number;
  saved_notes_ = std::move(save.notes);
  forget_published(save.settlement.events.size());
  end_waits();
  if (!save.settlement.events.empty()) run_.context->wake_all();
}

/// There may be several who wait: setting the timer again would wake the others, and they in turn this one, for ever.
Task<void> Cursor::wait_for_save() { co_await saved_.async_wait(asio::as_tuple(asio::use_awaitable)); }

void Cursor::publish(std::string what, std::string message, std::map<std::string, std::string> details) {
  const RelaySettings& settings = run_.context->settings;
  core::AgentEvent event;
  event.agent = settings.agent;
  event.cluster = settings.cluster;
  event.what = std::move(what);
  event.message = std::move(message);
  if (details.count("backend") != 0) event.backend = details["backend"];
  event.details = std::move(details);
  event.at_ns = run_.wall();
  core::EventDraft draft;
  if (settings.routes) draft.sinks = settings.routes(event);
  std::erase(draft.sinks, run_.name);
  draft.event = std::move(event);
  unsaved_events_.push_back(std::move(draft));
  save_now_ = true;
}

Task<Result<std::int64_t>> Cursor::dead_letter(std::string verb, std::vector<std::int64_t> seqs) {
  if (verb != "replay" && verb != "drop") {
    co_return fail(Code::invalid,
                   "dead letters of sink " + run_.name + ": unknown verb '" + verb + "'; expected replay or drop");
  }
  if (!opened_ || run_.stopping) {
    co_return fail(Code::unavailable, "sink " + run_.name + ": its cursor is not open" +
                                          (run_.last_error.empty() ? std::string() : " (" + run_.last_error + ")") +
                                          "; try again later");
  }
  if (seqs.empty()) seqs.assign(window_.dead().begin(), window_.dead().end());
  std::erase_if(seqs, [this](std::int64_t seq) { return window_.dead().count(seq) == 0; });
  const auto count = static_cast<std::int64_t>(seqs.size());
  const auto opening = openings_;
  if (verb == "replay") {
    DRIFTD_CO_CHECK(co_await requeue_dead(std::move(seqs)));
  } else {
    for (const auto seq : seqs) window_.drop_dead(seq);
  }
  if (count != 0) {
    DRIFTD_CO_CHECK(co_await wait_until_stored(opening));
  }
  co_return count;
}

Task<Status> Cursor::wait_until_stored(std::uint64_t opening) {
  const auto needed = saves_ + 1, failures = failed_saves_;
  save_now_ = true;
  run_.wake();
  while (stored_save_ < needed) {
    if (failed_saves_ != failures || openings_ != opening || run_.stopping) {
      co_return fail(Code::unavailable, "sink " + run_.name + ": what was asked could not be stored" +
                                            (run_.last_error.empty() ? std::string() : " (" + run_.last_error + ")") +
                                            ", and may be forgotten; list the dead letters, then ask again");
    }
    co_await wait_for_save();
  }
  co_return Status{};
}

Task<Status> Cursor::requeue_dead(std::vector<std::int64_t> seqs) {
  std::vector<std::int64_t> gone;
  for (std::size_t at = 0; at < seqs.size();) {
    const auto first = seqs.begin() + static_cast<std::ptrdiff_t>(at);
    const auto size = static_cast<std::ptrdiff_t>(std::min<std::size_t>(kRequeueAtOnce, seqs.size() - at));
    std::vector<std::int64_t> some(first, first + size);
    DRIFTD_CO_TRY(auto events, co_await run_.context->outbox.fetch_exact(run_.name, some));
    some = covered_seqs(std::move(some), events);
    at += some.size();
    for (auto& event : events) window_.requeue_dead(std::move(event));
    for (const auto seq : some) {
      if (window_.dead().count(seq) != 0) gone.push_back(seq);
    }
  }
  lost(gone);
  co_return Status{};
}

}  // namespace driftd::delivery
