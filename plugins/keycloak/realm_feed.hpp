// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "keycloak/events.hpp"

namespace driftd::keycloak {

/// How far the admin events of one realm were read. All times are the server's. Pure; no thread of its own.
///
/// An event has the time of its operation, but it can be read only once the operation is committed. So each question
/// begins `overlap` before the newest event that is known, and what was seen before is recognised by its id.
class RealmFeed {
 public:
  /// Begins at `now_ms`: nothing before it concerns us, except what commits late.
  RealmFeed(std::int64_t now_ms, std::chrono::milliseconds overlap)
      : last_ms_(now_ms),
        polled_ms_(now_ms),
        overlap_(overlap) {}

  /// Returns the time from which on to ask.
  std::int64_t from_ms() const { return last_ms_ - overlap_.count(); }
  /// Returns the events that were not seen before, in the order of the server. Changes nothing: what is read because of
  /// them may fail, and then they must come again.
  std::vector<AdminEvent> fresh(const std::vector<AdminEvent>& events) const;
  /// Returns true if an event that was seen is missing from `events` although it has not expired: somebody deleted
  /// events, so others may be gone that were never seen.
  bool vanished(const std::vector<AdminEvent>& events, std::int64_t now_ms) const;
  /// Returns true if events may have come and expired since the last question.
  bool expired(std::int64_t now_ms) const;
  /// Returns by how much the server's clock went back since the last question; 0 if it did not, or if the overlap
  /// covers it. Events that come before it is there again lie before the time from which on is asked.
  std::chrono::milliseconds stepped_back(std::int64_t now_ms) const;
  /// Returns what must be read once more by now. In a cluster a node may show an event and still
  /// have the old resource in its cache, so what is read at once may look as before.
  std::set<Touch> due(std::int64_t now_ms) const;
  /// Notes that what was due at this time has been read.
  void settle(std::int64_t now_ms);
  bool is_settled() const { return unsettled_.empty(); }
  /// Notes that these events were acted on. `reconciled`: some of them concerned resources.
  void commit(const std::vector<AdminEvent>& events, std::int64_t now_ms, bool reconciled);

  void set_expiration(std::chrono::milliseconds expiration) { expiration_ = expiration; }  ///< 0: never
  std::chrono::milliseconds expiration() const { return expiration_; }
  std::int64_t last_ms() const { return last_ms_; }
  std::int64_t polled_ms() const { return polled_ms_; }
  /// Returns the time of the newest event that concerned a resource; 0 if there was none yet.
  std::int64_t last_reconcile_event_ms() const { return reconciled_ms_; }
  const std::map<std::string, std::int64_t>& seen() const { return seen_; }  ///< what the next question returns again
  void restore_seen(const std::string& key, std::int64_t time_ms) { seen_[key] = time_ms; }
  void restore(std::int64_t polled_ms, std::int64_t reconciled_ms) {
    polled_ms_ = polled_ms;
    reconciled_ms_ = reconciled_ms;
  }

 private:
  std::int64_t last_ms_;            ///< of the newest event, or of the beginning
  std::int64_t polled_ms_;          ///< when the server was asked last
  std::int64_t reconciled_ms_ = 0;  ///< of the newest event that concerned a resource
  std::chrono::milliseconds overlap_;
  std::chrono::milliseconds expiration_{0};   ///< how long the realm keeps events
  std::map<std::string, std::int64_t> seen_;  ///< events that the next question returns again: key → time
  std::map<Touch, std::int64_t> unsettled_;   ///< what is read once more, and when
};

}  // namespace driftd::keycloak
