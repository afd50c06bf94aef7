// SPDX-License-Identifier: Apache-2.0
// What one receiver has, what it still must get, and whether its sink may wait.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/event/event.hpp"
#include "simulation/delivery/simulated_time.hpp"

namespace driftd::sim {

/// An event of the ledger as receivers know it.
struct Entered {
  std::int64_t seq = 0;
  std::string id, key;
  std::size_t content = 0;  ///< hash of everything that must never change
};
std::size_t content_of(const core::StoredEvent& event);

/// The waits that docs/delivery.md allows after failures. Not those of the code: written down a second time.
struct AllowedWaits {
  bool forever = true;
  Duration longest_attempt{};                    ///< until its sink takes silence for an answer
  Duration after_failures(int count) const;      ///< of the endpoint, in a row
  Duration after_key_failures(int count) const;  ///< of one event
};

/// The book of one receiver.
class Receipts {
 public:
  using Complain = std::function<void(const std::string&)>;
  Receipts(std::string name, AllowedWaits waits) : name_(std::move(name)), waits_(waits) {}

  const std::string& name() const { return name_; }
  Complain complain = [](const std::string&) {};
  bool attached = true;       ///< a sink of the running agent is in front of it
  bool order_matters = true;  ///< false: the receiver lost events behind its sink's back, and newer ones came first

  // By the oracle.
  void expect(const Entered& event);
  void check_progress(Time since);
  const std::map<std::int64_t, Entered>& missing() const { return missing_; }
  /// Returns the id of an event that was sent last without an answer; empty if there is none. A replay gives an event
  /// up after its fifth failure, which is its answer.
  std::string unanswered() const;
  const std::set<std::int64_t>& given_up() const { return given_up_; }
  bool has(const std::string& id) const { return has_.count(id) != 0; }
  /// True if it acknowledged the event at some time, also if it lost it afterwards.
  bool had(const std::string& id) const { return acknowledged_in_.count(id) != 0; }
  /// What it lost after it had it, and when (wall clock) it lost it last, by seq. It may have it again by now.
  const std::map<std::int64_t, Nanos>& lost() const { return lost_; }
  /// True if it acknowledged the event a while ago, so that its sink has saved that.
  bool is_settled(const std::string& id) const;
  /// Returns the events that its sink may count as undelivered: those that it did not acknowledge, or only a moment
  /// ago, and those that may be sent again because it lost something.
  std::set<std::int64_t> outstanding();
  /// The event left the store, or may have: it need not come any more.
  void excuse(std::int64_t seq);
  /// How often it gave the event up.
  int times_given_up(std::int64_t seq) const;
  /// The event is a dead letter no more: it must come, or be given up again.
  void requeued(std::int64_t seq);
  /// A person asks for a replay of these events. Once it was answered, each must come once more.
  void replay_asked(std::set<std::int64_t> seqs);
  void replay_answered(bool accepted);
  bool all_replayed() const { return to_replay_.empty(); }
  const std::set<std::int64_t>& to_replay() const { return to_replay_; }
  std::size_t distinct() const { return has_.size(); }
  std::size_t lines() const { return lines_.size(); }

  // By the receiver's model.
  void attempt_begins(const std::string& key) { open_.insert(key); }
  void attempt_ends(const std::string& key) { open_.erase(open_.find(key)); }
  /// It has the event now, again or for the first time.
  void received(const core::StoredEvent& event);
  /// `sent`: when. What was under way when another attempt failed does not show that the endpoint works again.
  void acknowledged(const core::StoredEvent& event, Time sent);
  void failed(const core::StoredEvent& event, std::int64_t retry_after_ms);
  /// As failed(), of an event of a replay, whose sink counts this failure.
  void replay_failed(const core::StoredEvent& event, std::int64_t retry_after_ms);
  void endpoint_failed();
  /// What was written could not be synced. Waits grow until a sync succeeds, although events are written in between.
  void flush_failed();
  void flush_succeeded() { flush_failures_ = 0; }
  /// It refused the event in a way that makes a dead letter of it.
  void gave_up(const core::StoredEvent& event, Time sent);
  /// It refused an event of a replay for good, which makes no dead letter.
  void refused_replay(const core::StoredEvent& event, Time sent) {
    unanswered_.erase(event.stamp.id);  // an earlier sending may have arrived and lost its answer: this is one
    succeeded(event, sent);
  }
  /// It lost all but the first `lines` of what it had received. `detected_in`: how long its sink may take to notice.
  void lose_all_but(std::size_t lines, Duration detected_in);
  bool was_rewound() const { return rewound_at_.has_value(); }
  /// True if it answered nothing and lost nothing for so long.
  bool is_silent(Duration since) const {
    return SimulatedTime::get().now() - std::max(last_answer_, rewound_at_.value_or(Time{})) > since;
  }
  /// Its sink may send again what was acknowledged a moment ago.
  void rewound();
  /// Its sink may send again all that was ever acknowledged.
  void rewound_far();
  /// Accepts everything at once from now on.
  void calm() { calm_since_ = std::max(SimulatedTime::get().now(), unnoticed_until_); }
  void disturbed() { calm_since_.reset(); }
  /// The agent's process ended; another one begins.
  void next_life(bool power_loss);

 private:
  struct KeyState {
    std::set<std::int64_t> missing;
    Time head_since{};
  };
  struct Failures {
    int count = 0;
    Time last{};
    Duration asked{0};
  };

  void succeeded(const core::StoredEvent& event, Time sent);
  void must_come(const Entered& event);
  void doubt_lately_acknowledged();
  void unsettle();
  int most_acknowledged_within(Duration span) const;
  void forget_missing(std::int64_t seq);
  void restore_failures_before();
  Time due(const std::string& name, const KeyState& key, Time since) const;
  void count_repetition(const core::StoredEvent& event);

  std::string name_;
  AllowedWaits waits_;
  std::vector<Entered> lines_;
  std::unordered_map<std::string, std::size_t> has_;  ///< content by id
  std::map<std::string, std::int64_t> newest_;        ///< by key, of what it has
  std::map<std::int64_t, Entered> missing_;           ///< must still come
  std::map<std::string, KeyState> keys_;
  std::unordered_map<std::string, std::int64_t> acknowledged_in_;  ///< life of the last acknowledgement, by id
  std::unordered_map<std::string, Time> acknowledged_at_;
  std::deque<std::pair<Time, std::int64_t>> lately_acknowledged_;
  std::set<std::int64_t> doubtful_;  ///< acknowledged, and perhaps sent again
  /// By key and id. An event that it has, too, if its answer was lost: those behind it wait.
  std::map<std::string, std::map<std::string, Failures>> failed_;
  std::map<std::string, std::int64_t> unanswered_;  ///< ids that it has, and that its sink may not know of; their seqs
  std::map<std::int64_t, int> replay_failures_;     ///< by seq, in a replay that is not answered for the event yet
  std::map<std::int64_t, int> failures_before_;     ///< those of earlier replays, while another is asked for
  std::map<std::int64_t, int> times_given_up_;
  std::set<std::int64_t> given_up_, excused_, replay_asked_, to_replay_;
  std::map<std::int64_t, Entered> expected_;
  std::map<std::int64_t, Nanos> lost_;
  std::optional<Time> calm_since_ = Time{}, rewound_at_;
  Time failed_at_{}, last_answer_{}, unnoticed_until_{}, recovered_at_{}, flush_due_{};
  Duration asked_{0};
  std::multiset<std::string> open_;  ///< keys of events that were sent and not answered
  int failures_ = 0, flush_failures_ = 0;
  std::int64_t life_ = 0;
  int repetitions_ = 0;  ///< in this life, of what was acknowledged in an earlier one
  int unsynced_ = 0;     ///< acknowledgements that the last power loss may have taken, beyond those of a kill
};

}  // namespace driftd::sim
