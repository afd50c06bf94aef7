// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/task.hpp"
#include "core/enforce/operation.hpp"

namespace driftd::core {

/// One entry of the change log: an operation that driftd made, with its bodies.
struct ChangeEntry {
  std::int64_t sequence = 0;  ///< rises by one from entry to entry
  Enforcement operation;
  std::string damage;      ///< what of its row could not be read; empty if all of it was
  bool bare = false;       ///< it is sent without the bodies
  std::string why_bare{};  ///< for people; empty if it is not
};

/// How far the change log was sent.
struct ChangeLogPosition {
  std::int64_t newest = 0;   ///< sequence of the newest entry; 0 if there is none
  std::int64_t settled = 0;  ///< every entry up to this one was written by the receiver, refused or dropped
  std::int64_t refused = 0, dropped = 0;  ///< entries that the receiver never gets: it refused them; too many waited
  Nanos oldest_ns = 0;                    ///< end of the oldest operation that waits; 0 if none waits
};

/// What is decided about entries.
struct ChangeLogSettlement {
  std::int64_t settled = 0;
  struct Refusal {
    std::int64_t sequence = 0;
    std::string operation, why;
  };
  std::vector<Refusal> refused;  ///< an event reports them
};

/// The runner's part of the store, with the threads and guarantees of Store. An entry is made in the transaction in
/// which its operation ends.
class ChangeLogStore {
 public:
  virtual ~ChangeLogStore() = default;
  virtual Task<Result<ChangeLogPosition>> position() = 0;
  /// Returns the entries with a higher sequence, in order, until `limit` or `max_bytes` is reached.
  virtual Task<Result<std::vector<ChangeEntry>>> after(std::int64_t sequence, int limit, std::size_t max_bytes) = 0;
  virtual Task<Status> settle(ChangeLogSettlement settlement) = 0;
  /// Gives up the oldest waiting entries while they take more than `max_bytes`, which an event reports. Returns how
  /// many.
  virtual Task<Result<std::int64_t>> limit(std::int64_t max_bytes) = 0;
};

/// Where the entries go. Core thread.
class ChangeLogReceiver {
 public:
  virtual ~ChangeLogReceiver() = default;
  /// What became of a call.
  struct Answer {
    enum class Verdict {
      answered,  ///< `refusals` has one text for each entry, in order; empty: it is written
      busy,      ///< the receiver cannot be reached or cannot write now, whatever the entries contain
      lost,      ///< the connection broke during the call, which an entry that kills the receiver does, too
      rejected   ///< the receiver does not accept this request; the same again may fail for ever
    };
    Verdict verdict = Verdict::answered;
    std::vector<std::string> refusals;
    std::string text;  ///< for people, if it was not answered
  };
  /// Sends entries in one call, which ends after 20 s at most. Without entries it asks whether some could be written.
  virtual Task<Answer> write(std::vector<ChangeEntry> entries) = 0;
  virtual std::string describe() const = 0;  ///< `unix:///var/run/change-logs/…`
  /// Ends a call in progress.
  virtual void stop() = 0;
};

/// What is shown of the change log.
struct ChangeLogView {
  bool on = false;
  std::string destination, state;  ///< state: `sending`, `idle`, or why nothing can be sent
  bool failing = false;            ///< `state` is a reason
  std::int64_t waiting = 0, sent = 0, refused = 0, dropped = 0;  ///< sent: since the start
  std::int64_t failures = 0;                                     ///< calls that failed since the start
  Nanos oldest_ns = 0;  ///< end of the oldest operation that waits; 0 if none waits
};

}  // namespace driftd::core
