// SPDX-License-Identifier: Apache-2.0
#include "delivery/window.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace driftd::delivery {
namespace {

constexpr std::size_t kHeldBack = 128;  // number of settled events above the mark that make exceptions worth their cost

}  // namespace

std::optional<Time> Window::first_of(const Due& due) {
  if (due.empty()) return std::nullopt;
  return due.begin()->first;
}

void Window::wait(std::int64_t seq) {
  const Entry& entry = entries_.at(seq);
  const auto& queue = entry.queue->second;
  if (*queue.begin() != seq || held_.count(entry.key()) != 0) return;
  for (const auto one : queue) {  // a requeued dead letter may be the first while the next event is in flight
    if (entries_.at(one).in_flight) return;
    if (one != seq) break;
  }
  (entry.loaded() ? loaded_due_ : unloaded_due_).insert({entry.due, seq});
}

void Window::unschedule(std::int64_t seq) {
  const Entry& entry = entries_.at(seq);
  loaded_due_.erase({entry.due, seq});
  unloaded_due_.erase({entry.due, seq});
}

/// Adds an entry that keeps only seq and key of the event in memory.
Window::Entry& Window::add_entry(core::StoredEvent event, Time due) {
  const std::int64_t seq = event.stamp.seq;
  Entry& entry = entries_[seq];
  auto& queue = *keys_.try_emplace(std::move(event.key)).first;
  entry.seq = seq;
  entry.queue = &queue;
  entry.due = due;
  if (!queue.second.empty()) unschedule(*queue.second.begin());
  queue.second.insert(seq);
  wait(*queue.second.begin());
  return entry;
}

void Window::hold_in_memory(Entry& entry, core::StoredEvent event) {
  unschedule(entry.seq);
  entry.event = std::make_shared<const core::StoredEvent>(std::move(event));
  ++loaded_;
  loaded_bytes_ += entry.event->payload.size();
  wait(entry.seq);
}

void Window::add(core::StoredEvent event) {
  const std::int64_t seq = event.stamp.seq;
  fetched_to_ = std::max(fetched_to_, seq);
  if (entries_.count(seq) != 0 || dead_.count(seq) != 0 || settled_.count(seq) != 0 || cleared_.count(seq) != 0 ||
      dropped_.count(seq) != 0)
    return;
  core::StoredEvent known;
  known.stamp.seq = seq;
  known.key = event.key;
  Entry& entry = add_entry(std::move(known), Time{});
  plain_.insert(seq);
  if (is_exception(entry)) return make_exception(seq);
  hold_in_memory(entry, std::move(event));
}

void Window::restore(core::StoredEvent event, const core::DeliveryState& state, Time due, Time now) {
  restored_to_ = std::max(restored_to_, event.stamp.seq);
  Entry& entry = add_entry(std::move(event), due);
  entry.persisted = true;
  // a refusal without blame does not count as an attempt, but waits all the same
  entry.failing = state.attempts > 0 || due > now;
  if (entry.failing) ++failing_;
  entry.attempts = state.attempts;
  entry.refusals = state.refusals;
  entry.error = state.error;
}

void Window::unload(Entry& entry) {
  if (!entry.loaded() || entry.in_flight) return;
  unschedule(entry.seq);
  loaded_bytes_ -= entry.event->payload.size();
  entry.event.reset();
  --loaded_;
  wait(entry.seq);
}

bool Window::is_exception(const Entry& entry) const {
  return entry.failing || entry.persisted || entries_.at(*entry.queue->second.begin()).failing;
}

/// Makes an entry an exception: it no longer holds the mark back, and its payload leaves the memory.
void Window::make_exception(std::int64_t seq) {
  Entry& entry = entries_.at(seq);
  if (plain_.erase(seq) != 0) unsaved_.insert(seq);
  unload(entry);
}

Window::Entry* Window::take(Time now, const std::set<std::string>& avoid) {
  auto chosen = loaded_due_.end();
  for (auto next = loaded_due_.begin(); next != loaded_due_.end() && next->first <= now; ++next) {
    if (chosen == loaded_due_.end()) chosen = next;
    if (avoid.count(entries_.at(next->second).key()) != 0) continue;
    chosen = next;
    break;
  }
  if (chosen == loaded_due_.end()) return nullptr;
  Entry& entry = entries_.at(chosen->second);
  entry.in_flight = true;
  ++in_flight_;
  loaded_due_.erase(chosen);
  return &entry;
}

std::vector<std::int64_t> Window::unloaded(Time now, std::size_t max) const {
  std::vector<std::int64_t> out;
  for (const auto& [due, seq] : unloaded_due_) {
    if (due > now || out.size() == max) break;
    out.push_back(seq);
  }
  return out;
}

void Window::load(core::StoredEvent event) {
  const auto found = entries_.find(event.stamp.seq);
  if (found == entries_.end() || found->second.loaded()) return;
  hold_in_memory(found->second, std::move(event));
}

void Window::requeue(std::int64_t seq, Time now, const std::string& error) {
  Entry& entry = entries_.at(seq);
  unschedule(seq);
  if (entry.in_flight) --in_flight_;
  entry.in_flight = false;
  entry.error = error;
  entry.due = now;
  wait(*entry.queue->second.begin());
}

void Window::postpone(std::int64_t seq, Time due, const std::string& error, bool counts_attempt) {
  Entry& entry = entries_.at(seq);
  requeue(seq, due, error);
  if (!std::exchange(entry.failing, true)) ++failing_;
  if (counts_attempt) ++entry.attempts;
  for (const auto behind : entry.queue->second) make_exception(behind);
  unsaved_.insert(seq);
}

void Window::make_due(const std::string& key, Time now) {
  const auto queue = keys_.find(key);
  if (queue == keys_.end()) return;
  const std::int64_t first = *queue->second.begin();
  Entry& entry = entries_.at(first);
  if (entry.in_flight || entry.due <= now) return;
  unschedule(first);
  entry.due = now;
  wait(first);
}

void Window::release(const std::string& key) {
  held_.erase(key);
  const auto queue = keys_.find(key);
  if (queue != keys_.end()) wait(*queue->second.begin());
}

void Window::remove_entry(std::int64_t seq) {
  const auto found = entries_.find(seq);
  Entry& entry = found->second;
  unschedule(seq);
  if (entry.in_flight) --in_flight_;
  if (entry.loaded()) {
    --loaded_;
    loaded_bytes_ -= entry.event->payload.size();
  }
  if (entry.failing) --failing_;
  const bool was_failing = entry.failing;
  const auto queue = keys_.find(entry.key());
  queue->second.erase(seq);
  entries_.erase(found);
  plain_.erase(seq);
  unsaved_.erase(seq);
  if (queue->second.empty()) {
    keys_.erase(queue);
    return;
  }
  wait(*queue->second.begin());
  if (!was_failing) return;
  for (const auto behind : queue->second) {  // no failing event is before them any more: those that were not saved are
                                             // regular again
    if (is_exception(entries_.at(behind))) continue;
    unsaved_.erase(behind);
    plain_.insert(behind);
  }
}

void Window::settle(std::int64_t seq) {
  const bool persisted = entries_.at(seq).persisted;
  remove_entry(seq);
  (persisted ? cleared_ : settled_).insert(seq);
}

void Window::dead_letter(std::int64_t seq, const std::string& error) {
  dead_letters_.push_back({seq, entries_.at(seq).attempts + 1, 0, true, error});
  dead_.insert(seq);
  remove_entry(seq);
}

void Window::forget(std::int64_t seq) {
  if (entries_.count(seq) != 0) remove_entry(seq);
  dead_.erase(seq);
  cleared_.insert(seq);
}

void Window::requeue_dead(core::StoredEvent event) {
  const std::int64_t seq = event.stamp.seq;
  if (dead_.erase(seq) == 0) return;
  std::erase_if(dead_letters_, [seq](const auto& state) { return state.seq == seq; });
  restore(std::move(event), {.seq = seq}, Time{}, Time{});
  unsaved_.insert(seq);
}

void Window::drop_dead(std::int64_t seq) {
  if (dead_.erase(seq) == 0) return;
  std::erase_if(dead_letters_, [seq](const auto& state) { return state.seq == seq; });
  dropped_.insert(seq);
}

const Window::Entry* Window::find(std::int64_t seq) const {
  const auto found = entries_.find(seq);
  if (found == entries_.end()) return nullptr;
  return &found->second;
}

bool Window::busy(const std::string& key) const { return keys_.count(key) != 0; }

core::DeliveryState Window::state_of(const Entry& entry, Time now, Nanos wall) const {
  const auto wait = std::chrono::duration_cast<std::chrono::nanoseconds>(std::max(entry.due, now) - now).count();
  return {entry.seq, entry.attempts, wall + wait, false, entry.error, entry.refusals};
}

/// Considers only fetched events: a settled one beyond the last fetched event waits for a fetch, and no exception would
/// move its mark.
bool Window::holds_back_many() const {
  const std::size_t many = resting_ ? 1 : kHeldBack;
  if (plain_.empty() || settled_.size() < many) return false;
  const auto end = settled_.upper_bound(fetched_to_);
  return static_cast<std::size_t>(std::distance(settled_.upper_bound(mark()), end)) >= many;
}

std::size_t Window::unsaved() const {
  const std::size_t others = cleared_.size() + dead_letters_.size() + dropped_.size();
  // all of them as a rule; this is called for each event that is sent
  if (settled_.empty() || *settled_.rbegin() <= fetched_to_) return settled_.size() + others;
  const auto fetched = std::distance(settled_.begin(), settled_.upper_bound(fetched_to_));
  return static_cast<std::size_t>(fetched) + others;
}

bool Window::worth_saving() const {
  return mark() > low_water_ || !unsaved_.empty() || !cleared_.empty() || !dead_letters_.empty() || !dropped_.empty() ||
         holds_back_many();
}

Window::Save Window::plan(Time now, Nanos wall, bool all) {
  const auto end = settled_.upper_bound(fetched_to_);
  if (all ? end != settled_.begin() : holds_back_many()) {
    const std::int64_t to = *std::prev(end);
    while (!plain_.empty() && *plain_.begin() < to) {
      unsaved_.insert(*plain_.begin());
      plain_.erase(plain_.begin());
    }
  }
  Save save;
  save.low_water = std::max(mark(), low_water_);
  for (const auto seq : unsaved_) {
    Entry& entry = entries_.at(seq);
    save.upsert.push_back(state_of(entry, now, wall));
    entry.persisted = true;
  }
  save.upsert.insert(save.upsert.end(), dead_letters_.begin(), dead_letters_.end());
  save.settled.assign(cleared_.begin(), cleared_.end());
  save.dropped.assign(dropped_.begin(), dropped_.end());
  unsaved_.clear();
  saving_dead_ = dead_letters_.size();
  dead_letters_.clear();
  return save;
}

void Window::saved(const Save& save) {
  low_water_ = save.low_water;
  settled_.erase(settled_.begin(), settled_.upper_bound(low_water_));
  for (const auto seq : save.settled) {
    cleared_.erase(seq);
    if (seq > low_water_) settled_.insert(seq);  // its exception is removed, but the mark has not reached it
  }
  for (const auto seq : save.dropped) {
    dropped_.erase(seq);
    if (seq > low_water_) settled_.insert(seq);  // a fetch under way may bring it still
  }
  saving_dead_ = 0;
}

void Window::not_saved(const Save& save) {
  saving_dead_ = 0;
  for (const auto& state : save.upsert) {
    if (state.dead && dead_.count(state.seq) != 0) dead_letters_.push_back(state);
    if (entries_.count(state.seq) != 0) unsaved_.insert(state.seq);
  }
}

}  // namespace driftd::delivery
