// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/ports/store.hpp"
#include "delivery/schedule.hpp"

namespace driftd::delivery {

/// What one runner knows of the events that are not settled yet, in order per key, and what of that is saved.
/// Invariants: per key only the first is ever in flight; an event that fails, and those behind it in its key, become
/// exceptions of the cursor, of which only the seq, the key and the schedule stay in memory. Core thread.
class Window {
 public:
  using Queues = std::unordered_map<std::string, std::set<std::int64_t>>;
  struct Entry {
    std::int64_t seq = 0;
    const Queues::value_type* queue = nullptr;  ///< its key, and the seqs that wait under it
    std::unique_ptr<core::StoredEvent> event;   ///< only while it is in memory; there may be very many exceptions
    bool in_flight = false;
    bool persisted = false;  ///< its exception is in the store, or in a save under way
    bool failing = false;    ///< it failed by itself: it and those behind it are exceptions
    int attempts = 0;
    Time due{};
    std::string error;

    bool loaded() const { return event != nullptr; }
    const std::string& key() const { return queue->first; }
  };
  using Save = core::SinkSettlement;

  explicit Window(std::int64_t low_water = 0) : low_water_(low_water), fetched_to_(low_water) {}

  /// An event as fetched, in seq order; one that is known already (exception, dead) is passed over.
  void add(core::StoredEvent event);
  /// An exception of the cursor as it was saved; its payload is not in memory.
  void restore(core::StoredEvent event, const core::DeliveryState& state, Time due, Time now);
  void restore_dead(std::int64_t seq) { dead_.insert(seq); }

  /// The first loaded entry that may be sent now, or nullptr; marks it in flight. One of a key in `avoid` only if there
  /// is no other.
  Entry* take(Time now, const std::set<std::string>& avoid = {});
  /// Entries due now whose payload must be fetched first, at max `max`.
  std::vector<std::int64_t> unloaded(Time now, std::size_t max) const;
  void load(core::StoredEvent event);

  /// The endpoint failed: the event goes again, behind the others that are due.
  void requeue(std::int64_t seq, Time now, const std::string& error);
  /// The event failed: its key waits until `due`; `counts_attempt` an attempt of its schedule.
  void postpone(std::int64_t seq, Time due, const std::string& error, bool counts_attempt);
  /// What of this key waits is due now.
  void make_due(const std::string& key, Time now);
  void settle(std::int64_t seq);
  void dead_letter(std::int64_t seq, const std::string& error);
  void forget(std::int64_t seq);  ///< it left the store
  /// A dead letter lives again at once (its event was fetched), or is forgotten.
  void requeue_dead(core::StoredEvent event);
  void drop_dead(std::int64_t seq);
  /// Nothing of this key is taken until release().
  void hold(const std::string& key) { held_.insert(key); }
  void release(const std::string& key);

  const Entry* find(std::int64_t seq) const;
  bool busy(const std::string& key) const;  ///< something of this key is not settled
  /// When the first entry is due that could be taken, and the first whose payload is not in memory.
  std::optional<Time> next_loaded() const { return first_of(loaded_due_); }
  std::optional<Time> next_unloaded() const { return first_of(unloaded_due_); }
  std::size_t loaded() const { return loaded_; }
  std::size_t loaded_bytes() const { return loaded_bytes_; }  ///< of their payloads
  std::size_t size() const { return entries_.size(); }
  std::size_t plain() const { return plain_.size(); }  ///< entries that are no exceptions
  std::size_t exceptions() const { return entries_.size() - plain_.size(); }
  std::size_t unwritten() const { return unsaved_.size(); }  ///< exceptions that the next save writes
  std::size_t in_flight() const { return in_flight_; }
  std::size_t retrying() const { return failing_; }
  const std::set<std::int64_t>& dead() const { return dead_; }
  const std::vector<core::DeliveryState>& unsaved_dead() const { return dead_letters_; }
  /// Given up, not saved yet.
  std::vector<std::int64_t> dropped() const { return {dropped_.begin(), dropped_.end()}; }
  /// Events that a kill now would send twice.
  std::size_t at_risk() const { return in_flight_ + settled_.size() + cleared_.size() + dead_letters_.size(); }
  std::size_t unsaved() const;  ///< of them and of what was given up, what a save can end
  std::int64_t low_water() const { return low_water_; }
  /// Every fetched event up to this seq is settled or a dead letter; what waits behind its key or for a retry is above
  /// it.
  std::int64_t settled_to() const { return entries_.empty() ? fetched_to_ : entries_.begin()->first - 1; }
  std::int64_t fetched_to() const { return fetched_to_; }
  /// Exceptions of the cursor lie behind the last fetched event: settled, they stay at risk until it is fetched.
  bool behind() const { return fetched_to_ < restored_to_; }

  /// Returns true if a save would change what is stored.
  bool worth_saving() const;
  /// What to save now. Events that hold back the mark of many settled ones, or with `all` of any, become exceptions.
  Save plan(Time now, Nanos wall, bool all);
  void saved(const Save& save);
  void not_saved(const Save& save);

 private:
  using Due = std::set<std::pair<Time, std::int64_t>>;
  static std::optional<Time> first_of(const Due& due);
  bool is_exception(const Entry& entry) const;
  std::int64_t mark() const { return plain_.empty() ? fetched_to_ : *plain_.begin() - 1; }
  bool holds_back_many() const;
  void unload(Entry& entry);
  void make_exception(std::int64_t seq);
  Entry& add_entry(core::StoredEvent event, Time due);
  void hold_in_memory(Entry& entry, core::StoredEvent event);
  void wait(std::int64_t seq);  ///< into the queue of those that are due, if it is the first of its key and free
  void unschedule(std::int64_t seq);
  void remove_entry(std::int64_t seq);
  core::DeliveryState state_of(const Entry& entry, Time now, Nanos wall) const;

  std::map<std::int64_t, Entry> entries_;
  Queues keys_;  ///< its nodes stay where they are: entries point at them
  std::set<std::string> held_;
  Due loaded_due_, unloaded_due_;                  ///< the first of each key, unless in flight or held
  std::set<std::int64_t> plain_;                   ///< entries that are no exceptions: they hold the mark back
  std::set<std::int64_t> unsaved_;                 ///< exceptions to write
  std::set<std::int64_t> settled_;                 ///< done, not below the saved low-water mark
  std::set<std::int64_t> cleared_;                 ///< saved exceptions that are done
  std::set<std::int64_t> dropped_;                 ///< dead letters given up
  std::vector<core::DeliveryState> dead_letters_;  ///< not saved yet
  std::set<std::int64_t> dead_;
  std::int64_t low_water_ = 0, fetched_to_ = 0, restored_to_ = 0;
  std::size_t loaded_ = 0, loaded_bytes_ = 0, in_flight_ = 0, failing_ = 0;
};

}  // namespace driftd::delivery
