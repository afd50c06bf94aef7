// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/event/event.hpp"
#include "delivery/schedule.hpp"

namespace driftd::delivery {

/// Stored events that are sent to one sink again. The cursor's notes keep what is left, so that the replay continues
/// after a kill: only the events that were under way then may be sent twice. Core thread.
class ReplayQueue {
 public:
  static constexpr const char* kNote = "replay";  ///< name of its note in the cursor
  /// The events that were requested and are still to be sent.
  struct Order {
    std::int64_t from = 0, to = 0;  ///< event seqs, both included
    Nanos from_ns = 0;              ///< only events recorded at this time or later; 0: any
    int rate = 0;                   ///< events a second; 0: no limit
    std::string key;                ///< only events of this key or of this backend/resource; empty: all
  };
  /// One event of the replay in memory.
  struct Item {
    core::StoredEvent event;
    int attempts = 0;         ///< that failed, except those for which the endpoint was to blame
    Time due{};               ///< not sent before this time
    std::uint64_t order = 0;  ///< number of its order
  };
  /// What is left of an order: all of its events from `next` on, and some before.
  struct Left {
    std::int64_t next = 0;
    std::set<std::int64_t> before;
  };
  using Place = std::deque<Item>::const_iterator;

  bool active() const { return order_.has_value(); }
  bool planned() const { return planned_; }
  const std::optional<Order>& order() const { return order_; }
  /// Restores the order from the notes of an earlier process. Its events must be found again.
  void restore(const std::map<std::string, std::string>& notes);
  /// Replaces whatever was there. `seqs` are ascending.
  void begin(Order order, std::vector<std::int64_t> seqs);
  /// Continues a restored order. `seqs` are those of the whole order, ascending; what was sent before is left out.
  void resume(std::vector<std::int64_t> seqs);
  /// Forgets the order. What is in flight stays so until it is done(), or requeue() drops it.
  void cancel();
  /// Writes what is left to be sent into the cursor's notes.
  void note(std::map<std::string, std::string>& notes) const;

  /// Returns the next seqs to fetch, `max` at most, and counts them as fetched.
  std::vector<std::int64_t> unfetched(std::size_t max);
  /// Marks the last `count` of them as not fetched.
  void not_fetched(std::size_t count) { at_ -= count; }
  /// Adds the `events` that the store returned for `asked`. The others of `asked` have left the store.
  void fetched(const std::vector<std::int64_t>& asked, std::vector<core::StoredEvent> events);
  bool has_unfetched() const { return at_ < seqs_.size(); }
  std::size_t size() const { return seqs_.size(); }  ///< events of this process, sent ones included
  std::size_t ready() const { return ready_.size(); }
  std::size_t bytes() const;  ///< payload bytes of the ready events and of those in flight
  /// Returns when the next event may be sent. Considers the first event of each key that is not in flight here and
  /// passes `free`. Empty if there is none.
  template <class Free>
  std::optional<Time> next(Free free) const {
    std::optional<Time> out;
    each_first(free, [&out](Place item) { out = std::min(out.value_or(item->due), item->due); });
    if (out) out = std::max(*out, next_);
    return out;
  }
  /// Takes the first event that is due. Empty if none is.
  template <class Free>
  std::optional<Item> take(Time now, Free free) {
    std::optional<Place> chosen;
    each_first(free, [&](Place item) {
      if (!chosen && item->due <= now) chosen = item;
    });
    if (!chosen || now < next_) return std::nullopt;
    return taken(*chosen, now);
  }
  /// The event is settled. `delivered` is false if the receiver refused it for good.
  void done(const Item& item, bool delivered);
  /// The event is sent again at `due`, before the others of its key. If its order was cancelled, it is dropped.
  void requeue(Item item, Time due);
  std::size_t in_flight() const { return keys_.size(); }
  /// Returns false if there is no order.
  bool finished() const { return active() && planned_ && !has_unfetched() && ready_.empty() && keys_.empty(); }
  /// Returns a text such as `60 events were sent again, 2 were refused, 1 are no longer in the store`.
  std::string summary() const;

 private:
  std::optional<Left> left() const;  ///< empty if it is not known
  Item taken(Place item, Time now);  ///< moves it from the ready events to those in flight
  void landed(const Item& item);     ///< it is in flight no more
  template <class Free, class Visit>
  /// Visits the first ready event of each key that has none in flight and passes `free`.
  void each_first(Free free, Visit visit) const {
    std::set<std::string> seen;
    for (auto item = ready_.begin(); item != ready_.end(); ++item) {
      const std::string& key = item->event.key;
      if (seen.insert(key).second && keys_.count(key) == 0 && free(key)) visit(item);
    }
  }

  std::optional<Order> order_;
  std::uint64_t orders_ = 0;  ///< number of the present order: rises with begin() and with cancel()
  std::optional<Left> left_;  ///< of the last process, until it is planned
  bool planned_ = false;
  std::vector<std::int64_t> seqs_;  ///< ascending; `at_` is the index of the next to fetch
  std::size_t at_ = 0;
  std::deque<Item> ready_;                             ///< in memory, waiting to be sent
  std::set<std::string> keys_;                         ///< in flight
  std::set<std::int64_t> flying_;                      ///< seqs in flight
  std::size_t flying_bytes_ = 0;                       ///< payload bytes in flight
  Time next_{};                                        ///< earliest time of the next event, by the rate
  std::int64_t sent_ = 0, refused_ = 0, missing_ = 0;  ///< events so far; `missing_`: no longer in the store
};

}  // namespace driftd::delivery
