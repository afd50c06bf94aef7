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

/// The events of one sink that are not settled yet, in order per key, and which part of that is saved. Invariants: of
/// each key only the first event is ever in flight; an event that fails, and those behind it in its key, become
/// exceptions of the cursor, of which only seq, key and schedule stay in memory. Core thread.
class Window {
 public:
  using Queues = std::unordered_map<std::string, std::set<std::int64_t>>;
  struct Entry {
    std::int64_t seq = 0;                       ///< of the event, unique in the store
    const Queues::value_type* queue = nullptr;  ///< its key, and the seqs that wait in it
    /// Null while its payload is not in memory: there may be very many exceptions. An attempt under way shares it.
    std::shared_ptr<const core::StoredEvent> event;
    bool in_flight = false;
    bool persisted = false;  ///< its exception is in the store or in a save under way
    bool failing = false;    ///< the event itself failed: it and those behind it are exceptions
    int attempts = 0;        ///< that failed and count for its schedule
    int refusals = 0;        ///< how often the receiver refused its content
    Time due{};              ///< not sent before this time
    std::string error;       ///< why the last attempt failed; empty: none did

    bool loaded() const { return event != nullptr; }
    const std::string& key() const { return queue->first; }
  };
  using Save = core::SinkSettlement;

  explicit Window(std::int64_t low_water = 0) : low_water_(low_water), fetched_to_(low_water) {}

  /// Adds a fetched event; call in seq order. Skips one that is already known as an exception, dead letter or settled.
  void add(core::StoredEvent event);
  /// Restores a saved exception of the cursor, without its payload in memory.
  void restore(core::StoredEvent event, const core::DeliveryState& state, Time due, Time now);
  void restore_dead(std::int64_t seq) { dead_.insert(seq); }

  /// Returns the first loaded entry that may be sent now and marks it as in flight; nullptr if there is none. Takes a
  /// key in `avoid` only if there is no other.
  Entry* take(Time now, const std::set<std::string>& avoid = {});
  /// Returns the seqs of due entries whose payload must be fetched first, `max` at most.
  std::vector<std::int64_t> unloaded(Time now, std::size_t max) const;
  void load(core::StoredEvent event);

  /// The endpoint failed: the event is sent again, behind the others that are due. No attempt is counted.
  void requeue(std::int64_t seq, Time now, const std::string& error);
  /// The event failed: its key waits until `due`. `counts_attempt`: an attempt of its schedule is used up.
  void postpone(std::int64_t seq, Time due, const std::string& error, bool counts_attempt);
  /// Makes the first waiting event of this key due now.
  void make_due(const std::string& key, Time now);
  /// Counts a refusal of the event's content. To be called before postpone().
  void count_refusal(std::int64_t seq) { ++entries_.at(seq).refusals; }
  void settle(std::int64_t seq);
  void dead_letter(std::int64_t seq, const std::string& error);
  void forget(std::int64_t seq);  ///< the event has left the store
  /// Makes a dead letter a regular event that is due at once. Does nothing if it is not a dead letter.
  void requeue_dead(core::StoredEvent event);
  void drop_dead(std::int64_t seq);
  /// Lets take() return nothing of this key until release().
  void hold(const std::string& key) { held_.insert(key); }
  void release(const std::string& key);

  const Entry* find(std::int64_t seq) const;
  bool busy(const std::string& key) const;  ///< true if an event of this key is not settled
  /// When the first sendable entry is due, and the first one whose payload is not in memory. Empty if there is none.
  std::optional<Time> next_loaded() const { return first_of(loaded_due_); }
  std::optional<Time> next_unloaded() const { return first_of(unloaded_due_); }
  std::size_t loaded() const { return loaded_; }
  std::size_t loaded_bytes() const { return loaded_bytes_; }  ///< payload bytes in memory
  std::size_t size() const { return entries_.size(); }
  std::size_t plain() const { return plain_.size(); }  ///< entries that are not exceptions
  std::size_t exceptions() const { return entries_.size() - plain_.size(); }
  std::size_t unwritten() const { return unsaved_.size(); }  ///< exceptions that the next save will write
  std::size_t in_flight() const { return in_flight_; }
  std::size_t retrying() const { return failing_; }
  const std::set<std::int64_t>& dead() const { return dead_; }
  const std::vector<core::DeliveryState>& unsaved_dead() const { return dead_letters_; }
  /// Dead letters that were dropped and are not saved yet.
  std::vector<std::int64_t> dropped() const { return {dropped_.begin(), dropped_.end()}; }
  /// The number of events that would be sent twice after a kill now.
  std::size_t at_risk() const {
    return in_flight_ + settled_.size() + cleared_.size() + dead_letters_.size() + saving_dead_;
  }
  std::size_t unsaved() const;  ///< how many of those, and of the dropped ones, a save would clear
  std::int64_t low_water() const { return low_water_; }
  /// Every fetched event up to this seq is settled or a dead letter. Events that wait for a retry, or behind one in
  /// their key, are above it.
  std::int64_t settled_to() const { return entries_.empty() ? fetched_to_ : entries_.begin()->first - 1; }
  std::int64_t fetched_to() const { return fetched_to_; }
  /// True if some restored exceptions are newer than the last fetched event. Settled ones among them stay at risk until
  /// it passes them.
  bool behind() const { return fetched_to_ < restored_to_; }

  /// While the sink rests (its circuit is open, or it is disabled), even one settled event above the mark is worth an
  /// exception: the mark may not move for a long time, and what retention then deletes would be called undelivered.
  void rest(bool resting) { resting_ = resting; }
  /// Returns true if a save would change what is stored.
  bool worth_saving() const;
  /// Returns what to save now. Events that hold back the low-water mark of many settled ones become exceptions, and
  /// with `all` those that hold back any.
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
  void wait(std::int64_t seq);  ///< schedules it if it is the first of its key, not in flight and not held
  void unschedule(std::int64_t seq);
  void remove_entry(std::int64_t seq);
  core::DeliveryState state_of(const Entry& entry, Time now, Nanos wall) const;

  std::map<std::int64_t, Entry> entries_;
  Queues keys_;  ///< node addresses are stable: entries point at them
  std::set<std::string> held_;
  Due loaded_due_, unloaded_due_;                  ///< the first entry of each key, unless it is in flight or held
  std::set<std::int64_t> plain_;                   ///< entries that are not exceptions: they hold the mark back
  std::set<std::int64_t> unsaved_;                 ///< exceptions that the next save writes
  std::set<std::int64_t> settled_;                 ///< settled, and above the saved low-water mark
  std::set<std::int64_t> cleared_;                 ///< saved exceptions that are settled
  std::set<std::int64_t> dropped_;                 ///< dead letters that were dropped
  std::vector<core::DeliveryState> dead_letters_;  ///< in no save yet
  std::size_t saving_dead_ = 0;                    ///< dead letters in the save under way
  std::set<std::int64_t> dead_;
  std::int64_t low_water_ = 0, fetched_to_ = 0, restored_to_ = 0;
  std::size_t loaded_ = 0, loaded_bytes_ = 0, in_flight_ = 0, failing_ = 0;
  bool resting_ = false;
};

}  // namespace driftd::delivery
