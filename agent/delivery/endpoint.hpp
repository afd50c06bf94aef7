// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>

#include "delivery/schedule.hpp"

namespace driftd::delivery {

/// Finds out of a failure whether it is the endpoint's or the event's, and owns the endpoint's circuit. A receiver that
/// answers 403, 429 or 503 to one event says nothing of the others: the key of that event waits alone. Only when
/// several keys fail with nothing delivered between them it is the endpoint, and the circuit opens. A key that goes on
/// failing while others are delivered is to blame itself. Core thread.
class Endpoint {
 public:
  enum class Blame {
    endpoint,  ///< the circuit is open now; the event loses nothing
    nobody,    ///< not known yet: the key waits, the event loses nothing
    event      ///< others are delivered meanwhile: the event's own schedule decides
  };
  Endpoint(bool forever, unsigned seed) : circuit_(forever, seed) {}

  Circuit::State state(Time now) const { return circuit_.state(now); }
  Time open_until() const { return circuit_.open_until(); }
  /// No connection: opens the circuit.
  void down(Time now, std::int64_t retry_after_ms) { circuit_.trip(now, retry_after_ms); }
  /// It says that it is back: the circuit's wait is over.
  void back(Time now) { circuit_.end_wait(now); }
  /// An answer that may be about one event or about all.
  Blame refused(const std::string& key, Time now, std::int64_t retry_after_ms);
  /// An answer about this event (HTTP 500): returns true if it was one of so many that the circuit opened.
  bool failed(const std::string& key, Time now);
  /// It took an event, or refused one by its content. Returns the keys that wait for nothing but such a sign of life;
  /// they may be tried again at once. A success that was under way when the circuit opened says nothing of now: none.
  std::set<std::string> alive(const std::string& key, Time now);
  /// Failures of this key that nobody was blamed for.
  int failures(const std::string& key) const;
  /// Keys that failed since the last sign of life: a probe should be of another one.
  const std::set<std::string>& failing() const { return failing_; }

 private:
  struct Suspect {
    int failures = 0, proofs = 0;  ///< proofs: failures after which others had been delivered since the one before
    std::uint64_t successes = 0;   ///< successes_ at its last failure
  };
  void trip(Time now, std::int64_t retry_after_ms);

  Circuit circuit_;
  std::map<std::string, Suspect> suspects_;
  std::set<std::string> failing_, held_;
  int failures_in_row_ = 0;
  std::uint64_t successes_ = 0;
};

}  // namespace driftd::delivery
