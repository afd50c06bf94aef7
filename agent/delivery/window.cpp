// SPDX-License-Identifier: Apache-2.0
#include "delivery/window.hpp"

#include <algorithm>

namespace driftd::delivery {

void Window::enqueue(std::int64_t seq, const std::string& key, Time due) {
  auto& queue = keys_[key];
  bool free = true;
  if (!queue.empty()) {  // a revived dead letter may come before the one that is first now
    const Entry& first = entries_.at(*queue.begin());
    free = seq < *queue.begin() && !first.in_flight;
    if (free) waiting_.erase({first.due, *queue.begin()});
  }
  queue.insert(seq);
  if (free) waiting_.insert({due, seq});
}

void Window::add(core::StoredEvent event) {
  const std::int64_t seq = event.stamp.seq;
  fetched_to_ = std::max(fetched_to_, seq);
  if (entries_.count(seq) != 0 || dead_.count(seq) != 0 || settled_.count(seq) != 0 || cleared_.count(seq) != 0) return;
  Entry& entry = entries_[seq];
  entry.event = std::move(event);
  ++loaded_;
  enqueue(seq, entry.event.key, entry.due);
  if (sparse(entry)) unload(entry);
}

void Window::restore(core::StoredEvent event, const core::DeliveryState& state, Time due) {
  const std::int64_t seq = event.stamp.seq;
  Entry& entry = entries_[seq];
  entry.event = std::move(event);
  entry.event.payload = {};
  entry.loaded = false;
  entry.persisted = true;
  entry.attempts = state.attempts;
  entry.error = state.error;
  entry.due = due;
  enqueue(seq, entry.event.key, due);
}

void Window::unload(Entry& entry) {
  if (!entry.loaded) return;
  entry.event.payload = {};
  entry.loaded = false;
  --loaded_;
}

bool Window::sparse(const Entry& entry) const {
  if (entry.attempts > 0 || entry.persisted) return true;
  const auto queue = keys_.find(entry.event.key);
  return queue != keys_.end() && entries_.at(*queue->second.begin()).attempts > 0;
}

Window::Entry* Window::take(Time now) {
  for (auto next = waiting_.begin(); next != waiting_.end() && next->first <= now; ++next) {
    Entry& entry = entries_.at(next->second);
    if (!entry.loaded) continue;
    entry.in_flight = true;
    ++in_flight_;
    waiting_.erase(next);
    return &entry;
  }
  return nullptr;
}

std::vector<std::int64_t> Window::unloaded(Time now, std::size_t most) const {
  std::vector<std::int64_t> out;
  for (const auto& [due, seq] : waiting_) {
    if (due > now || out.size() == most) break;
    if (!entries_.at(seq).loaded) out.push_back(seq);
  }
  return out;
}

void Window::load(core::StoredEvent event) {
  const auto found = entries_.find(event.stamp.seq);
  if (found == entries_.end() || found->second.loaded) return;
  found->second.event = std::move(event);
  found->second.loaded = true;
  ++loaded_;
}

void Window::retry(std::int64_t seq, Time due, const std::string& error, bool burns) {
  Entry& entry = entries_.at(seq);
  if (entry.in_flight) --in_flight_;
  entry.in_flight = false;
  entry.error = error;
  if (burns) {
    ++entry.attempts;
    entry.due = due;
    entry.changed = true;
    changed_ = true;
    for (const auto behind : keys_.at(entry.event.key)) unload(entries_.at(behind));
  }
  const std::int64_t first = *keys_.at(entry.event.key).begin();
  waiting_.insert({entries_.at(first).due, first});
}

void Window::leave(std::int64_t seq) {
  const auto found = entries_.find(seq);
  Entry& entry = found->second;
  if (entry.in_flight) --in_flight_;
  if (entry.loaded) --loaded_;
  waiting_.erase({entry.due, seq});
  const auto queue = keys_.find(entry.event.key);
  queue->second.erase(seq);
  if (queue->second.empty()) {
    keys_.erase(queue);
  } else {
    const std::int64_t next = *queue->second.begin();
    waiting_.insert({entries_.at(next).due, next});
  }
  entries_.erase(found);
}

void Window::settle(std::int64_t seq) {
  const bool persisted = entries_.at(seq).persisted;
  leave(seq);
  (persisted ? cleared_ : settled_).insert(seq);
}

void Window::bury(std::int64_t seq, const std::string& error) {
  buried_.push_back({seq, entries_.at(seq).attempts + 1, 0, true, error});
  dead_.insert(seq);
  leave(seq);
}

void Window::forget(std::int64_t seq) {
  if (entries_.count(seq) != 0) leave(seq);
  dead_.erase(seq);
  cleared_.insert(seq);
}

void Window::revive(core::StoredEvent event) {
  const std::int64_t seq = event.stamp.seq;
  if (dead_.erase(seq) == 0) return;
  std::erase_if(buried_, [seq](const auto& state) { return state.seq == seq; });
  restore(std::move(event), {.seq = seq}, Time{});
  entries_.at(seq).changed = true;
  changed_ = true;
}

void Window::drop_dead(std::int64_t seq) {
  if (dead_.erase(seq) == 0) return;
  std::erase_if(buried_, [seq](const auto& state) { return state.seq == seq; });
  dropped_.insert(seq);
}

const Window::Entry* Window::find(std::int64_t seq) const {
  const auto found = entries_.find(seq);
  if (found == entries_.end()) return nullptr;
  return &found->second;
}

bool Window::busy(const std::string& key) const { return keys_.count(key) != 0; }

std::optional<Time> Window::next_due() const {
  if (waiting_.empty()) return std::nullopt;
  return waiting_.begin()->first;
}

std::size_t Window::retrying() const {
  return static_cast<std::size_t>(
      std::count_if(entries_.begin(), entries_.end(), [](const auto& item) { return item.second.attempts > 0; }));
}

core::DeliveryState Window::state_of(const Entry& entry, Time now, Nanos wall) const {
  const auto wait = std::chrono::duration_cast<std::chrono::nanoseconds>(std::max(entry.due, now) - now).count();
  return {entry.event.stamp.seq, entry.attempts, wall + wait, false, entry.error};
}

bool Window::dirty() const { return unsaved() != 0 || changed_; }

Window::Save Window::plan(Time now, Nanos wall, bool force) {
  Save save;
  const std::int64_t forced_to = force && !settled_.empty() ? *settled_.rbegin() : 0;
  std::int64_t low = fetched_to_;
  bool held = false;
  for (auto& [seq, entry] : entries_) {
    const bool exception = sparse(entry) || seq < forced_to;
    if (!exception && !held) {
      low = seq - 1;
      held = true;
    }
    if (exception && (!entry.persisted || entry.changed)) {
      save.settlement.upsert.push_back(state_of(entry, now, wall));
      entry.persisted = true;
      entry.changed = false;
    }
  }
  save.settlement.low_water = std::max(low, low_water_);
  save.settlement.upsert.insert(save.settlement.upsert.end(), buried_.begin(), buried_.end());
  save.settlement.settled.assign(cleared_.begin(), cleared_.end());
  save.settlement.dropped.assign(dropped_.begin(), dropped_.end());
  buried_.clear();
  changed_ = false;
  return save;
}

void Window::saved(const Save& save) {
  low_water_ = save.settlement.low_water;
  settled_.erase(settled_.begin(), settled_.upper_bound(low_water_));
  for (const auto seq : save.settlement.settled) {
    cleared_.erase(seq);
    if (seq > low_water_) settled_.insert(seq);  // its exception is gone, the mark is not there yet
  }
  for (const auto seq : save.settlement.dropped) dropped_.erase(seq);
}

void Window::not_saved(const Save& save) {
  for (const auto& state : save.settlement.upsert) {
    if (state.dead) buried_.push_back(state);
    const auto found = entries_.find(state.seq);
    if (found != entries_.end()) found->second.changed = true;
  }
  changed_ = true;
}

}  // namespace driftd::delivery
