// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/ports/store.hpp"
#include "delivery/schedule.hpp"

namespace driftd::delivery {

/// What one lane knows of the events that are not settled yet, in order per key, and what of that is saved.
/// Invariants: per key only the first is ever in flight; an event that fails, and those behind it in its key, become
/// exceptions of the cursor and lose their payload from memory. Core thread.
class Window {
 public:
  struct Entry {
    core::StoredEvent event;  ///< payload only while `loaded`
    bool loaded = true, in_flight = false, persisted = false, changed = false;
    int attempts = 0;
    Time due{};
    std::string error;
  };
  struct Save {
    core::SinkSettlement settlement;
  };

  explicit Window(std::int64_t low_water = 0) : low_water_(low_water), fetched_to_(low_water) {}

  /// An event as fetched, in seq order; one that is known already (exception, dead) is passed over.
  void add(core::StoredEvent event);
  /// An exception of the cursor as it was saved; its payload is not in memory.
  void restore(core::StoredEvent event, const core::DeliveryState& state, Time due);
  void restore_dead(std::int64_t seq) { dead_.insert(seq); }

  /// The first entry that may be sent now, or nullptr; marks it in flight when it is loaded.
  Entry* take(Time now);
  /// Entries due now whose payload must be fetched first, at most `most`.
  std::vector<std::int64_t> unloaded(Time now, std::size_t most) const;
  void load(core::StoredEvent event);

  void retry(std::int64_t seq, Time due, const std::string& error, bool burns);
  void settle(std::int64_t seq);
  void bury(std::int64_t seq, const std::string& error);
  void forget(std::int64_t seq);  ///< it left the store
  /// A dead letter lives again at once (its event was fetched), or is forgotten.
  void revive(core::StoredEvent event);
  void drop_dead(std::int64_t seq);

  const Entry* find(std::int64_t seq) const;
  bool busy(const std::string& key) const;  ///< something of this key is not settled
  std::optional<Time> next_due() const;
  bool empty() const { return entries_.empty(); }
  std::size_t loaded() const { return loaded_; }
  std::size_t size() const { return entries_.size(); }
  std::size_t in_flight() const { return in_flight_; }
  std::size_t retrying() const;
  const std::set<std::int64_t>& dead() const { return dead_; }
  /// Given up, not saved yet.
  std::vector<std::int64_t> dropped() const { return {dropped_.begin(), dropped_.end()}; }
  /// Events that a kill now would send twice.
  std::size_t at_risk() const { return in_flight_ + settled_.size() + cleared_.size(); }
  std::size_t unsaved() const { return settled_.size() + cleared_.size() + buried_.size() + dropped_.size(); }
  std::int64_t low_water() const { return low_water_; }
  /// Every fetched event up to this seq is settled or a dead letter; what waits behind its key or for a retry is above it.
  std::int64_t settled_to() const { return entries_.empty() ? fetched_to_ : entries_.begin()->first - 1; }
  std::int64_t fetched_to() const { return fetched_to_; }

  bool dirty() const;
  /// What to save now; `force`: events that hold the low-water mark back become exceptions.
  Save plan(Time now, Nanos wall, bool force);
  void saved(const Save& save);
  void not_saved(const Save& save);

 private:
  bool sparse(const Entry& entry) const;
  void unload(Entry& entry);
  void enqueue(std::int64_t seq, const std::string& key, Time due);
  void leave(std::int64_t seq);
  core::DeliveryState state_of(const Entry& entry, Time now, Nanos wall) const;

  std::map<std::int64_t, Entry> entries_;
  std::unordered_map<std::string, std::set<std::int64_t>> keys_;
  std::set<std::pair<Time, std::int64_t>> waiting_;  ///< the first of each key, unless in flight
  std::set<std::int64_t> settled_;                   ///< done, not below the saved low-water mark
  std::set<std::int64_t> cleared_;                   ///< saved exceptions that are done
  std::set<std::int64_t> dropped_;                   ///< dead letters given up
  std::vector<core::DeliveryState> buried_;
  std::set<std::int64_t> dead_;
  std::int64_t low_water_ = 0, fetched_to_ = 0;
  std::size_t loaded_ = 0, in_flight_ = 0;
  bool changed_ = false;
};

}  // namespace driftd::delivery
