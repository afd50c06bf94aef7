// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "controller/settings.hpp"
#include "controller/token_bucket.hpp"

namespace driftd::controller {

struct Success {};
/// Somebody has to look at it: no retry, but on a change or a resync.
struct Failed {
  std::string reason;
};
/// Not done: try again after a wait, at most `max_retry_attempts` times in a row.
struct Requeue {
  std::string reason;
};
/// Done for now: look at it again after this time. The attempts begin from one.
struct RequeueAfter {
  Duration delay;
};
using Outcome = std::variant<Success, Failed, Requeue, RequeueAfter>;

enum class Cause {
  change,  ///< the resource changed, or somebody asks: handled at once, and the attempts begin from one
  resync   ///< nothing is known to have changed: one attempt, and none beside the retries that wait already
};

struct Taken {
  Key key;
  int attempt = 1;  ///< 1 to max_retry_attempts
};

struct FailedKey {
  Key key;
  std::string reason;  ///< of the last attempt, at most 1,024 bytes
  Time since{};        ///< when it first was Failed
};

/// The keys that wait for a reconcile, those in hand, and those that failed. A pure state machine: no thread, no clock.
/// A key is never in two hands; what is added while it is in hand makes it come once more; of many adds one remains,
/// the earliest. A key that is done leaves nothing behind. Not thread-safe; `now` must not go back.
class WorkQueue {
 public:
  using Random = std::function<std::uint64_t()>;
  /// What became of a key that was in hand.
  enum class End { done, again, later, retry, failed, forgotten };

  WorkQueue(const Settings& settings, Random random);

  void add(const Key& key, Time now, Cause cause = Cause::change) { add_at(key, now, cause); }
  void add_at(const Key& key, Time due, Cause cause = Cause::change);
  /// The key that is due longest, which is in hand from then on; nothing if none is due. Retries need a token.
  std::optional<Taken> take(Time now);
  /// Ends what take() began. The key must be in hand.
  End finish(const Key& key, const Outcome& outcome, Time now);
  /// The key no longer exists: it waits no more and is not Failed. In hand, its outcome does not matter. An add
  /// afterwards counts.
  void forget(const Key& key);

  /// When take() has something next; Time::max() if nothing waits.
  Time next_due() const;
  std::size_t size() const { return waiting_; }  ///< keys that wait, for now or for a later time
  std::size_t in_hand() const { return in_hand_; }
  std::size_t pending(Time now) const;      ///< of those that wait: due, or after a failed attempt
  Duration oldest_waiting(Time now) const;  ///< how long the first one is due; 0 if none is
  std::size_t failed_count() const { return failed_; }
  std::vector<FailedKey> failed() const;
  std::size_t known() const { return items_.size(); }

 private:
  struct Item {
    std::optional<Time> fresh;  ///< when it comes for a change, a resync or a RequeueAfter; in hand: comes once more
    std::optional<Time> retry;  ///< when it comes because an attempt did not succeed
    std::uint64_t order = 0;    ///< among those that are due at the same time
    bool in_line = false;
    int attempts = 0;  ///< in a row, the one in hand included
    bool in_hand = false;
    bool is_forgotten = false;  ///< while it was in hand
    bool is_failed = false;     ///< until an attempt succeeds
    std::string reason;         ///< why it is Failed
    Time failed_since{};
  };
  using Node = std::map<Key, Item>::value_type;
  using Line = std::set<std::tuple<Time, std::uint64_t, Node*>>;

  Node& node_of(const Key& key);
  void enter_lines(Node& node);
  void leave_lines(Node& node);
  Node* next_in_line(Time now);
  void settle(Item& item, const Outcome& outcome, Time now);
  void retry_or_fail(Item& item, const std::string& reason, Time now);
  void set_failed(Item& item, const std::string& reason, Time now);
  void clear_failed(Item& item);
  Duration backoff(int attempts);

  const Settings settings_;
  const Random random_;
  TokenBucket tokens_;
  std::map<Key, Item> items_;
  Line fresh_, retries_;
  std::size_t waiting_ = 0, in_hand_ = 0, failed_ = 0;
  std::uint64_t order_ = 0;
};

}  // namespace driftd::controller
