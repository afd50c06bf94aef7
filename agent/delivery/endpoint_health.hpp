// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>

#include "delivery/schedule.hpp"

namespace driftd::delivery {

/// Decides whether a failure is the endpoint's or the event's, and owns the endpoint's circuit. A receiver that answers
/// 403, 429 or 503 to one event says nothing about the others, so only the key of that event waits. If several keys
/// fail with nothing delivered between them, the endpoint is to blame and the circuit opens. If a key keeps failing
/// while others are delivered, its event is to blame. Core thread.
class EndpointHealth {
 public:
  enum class Blame {
    endpoint,  ///< the circuit is open now; no attempt of the event is counted
    nobody,    ///< not known yet: the key waits; no attempt of the event is counted
    event      ///< other events are delivered meanwhile, so the event's own schedule decides
  };
  /// `forever` and `seed` are those of the circuit (schedule.hpp).
  EndpointHealth(bool forever, unsigned seed) : circuit_(forever, seed) {}

  Circuit::State state(Time now) const { return circuit_.state(now); }
  /// Returns the end of the circuit's wait, which has a meaning only while it is not closed.
  Time open_until() const { return circuit_.open_until(); }
  /// There is no connection: opens the circuit.
  void down(Time now, std::int64_t retry_after_ms) { circuit_.trip(now, retry_after_ms); }
  /// The endpoint reports that it is back: ends the circuit's wait.
  void back(Time now) { circuit_.end_wait(now); }
  /// The receiver gave an answer that may be about this event or about all events.
  Blame refused(const std::string& key, Time now, std::int64_t retry_after_ms);
  /// The receiver gave an answer about this event (HTTP 500). Returns true if there were enough of these that the
  /// circuit opened.
  bool failed(const std::string& key, Time now);
  /// The endpoint accepted an event, or refused one because of its content. Returns the keys that waited only for such
  /// a success; they may be tried again at once. Returns none if the circuit is open: the success was under way when it
  /// opened and says nothing about now.
  std::set<std::string> alive(const std::string& key, Time now);
  /// Returns how often this key failed without blame for the event.
  int failures(const std::string& key) const;  ///< 0 if it is no suspect
  /// Keys that failed since the last success. A probe should use another key.
  const std::set<std::string>& failing() const { return failing_; }

 private:
  struct Suspect {
    int failures = 0, proofs = 0;  ///< proofs: failures with other events delivered since this key's previous failure
    std::uint64_t successes = 0;   ///< value of successes_ at its last failure
  };
  /// Opens the circuit; the failures in a row are counted from 0 again.
  void trip(Time now, std::int64_t retry_after_ms);

  Circuit circuit_;
  std::map<std::string, Suspect> suspects_;  ///< by key; 10,000 at most
  std::set<std::string> failing_, held_;     ///< `held_`: keys that wait only until another key succeeds
  int failures_in_row_ = 0;                  ///< calls of failed() since the last success or trip()
  std::uint64_t successes_ = 0;
};

}  // namespace driftd::delivery
