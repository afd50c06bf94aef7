// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "core/ports/reader.hpp"
#include "core/ports/store.hpp"

namespace driftd::delivery {

/// A question to a person about one or more pending drifts; at present always one drift. The drift itself is the
/// decision record: a notification is made from it when the queue is read, and is stored nowhere.
struct Notification {
  std::string id;                               ///< id of its first drift
  std::vector<std::string> drift_ids;           ///< never empty
  std::string backend, resource, change_class;  ///< `resource` is kind/id
  std::string title, message;                   ///< for people; the message shows the first 10 changes
  std::vector<std::string> actions;             ///< APPROVE, REJECT, IGNORE; no APPROVE for a violated expectation
  std::string digest;                           ///< a decision applies only to the value with this digest
  Nanos opened_ns = 0;                          ///< when the drift was opened
  std::string claimed_by;                       ///< empty: not claimed, or the lease ran out
  std::optional<Nanos> claim_until_ns;          ///< end of the lease; empty: not claimed
  bool stale = false;                           ///< the value cannot be read at present
};

/// Returns the notification of a drift, redacted. `now_ns` decides whether its claim still holds. Pure.
Notification make_notification(const core::DriftRow& row, Nanos now_ns);

/// The queue of drifts that wait for a decision. Core thread. Reader, store and clock must outlive it.
class ApprovalQueue {
 public:
  ApprovalQueue(core::Reader& reader, core::Store& store, const Clock& clock)
      : reader_(reader),
        store_(store),
        clock_(clock) {}
  /// Returns the pending drifts, oldest first. `backend` is a name or a glob; empty: all backends.
  /// Fails only with an error of the store.
  Task<Result<std::vector<Notification>>> list(std::string backend, int limit);
  /// Claims the oldest unclaimed notification for `who`, for the time `lease`. Returns `not_found` if there is none.
  Task<Result<Notification>> claim_next(std::string who, std::chrono::seconds lease);
  /// Claims this drift, or prolongs the own claim. Returns `conflict`, naming the holder, if somebody else has claimed
  /// it, and `not_found` if no such drift is open.
  Task<Status> claim(std::string drift_id, std::string who, std::chrono::seconds lease);
  /// Ends the claim. Returns `conflict` if somebody else has it.
  /// Returns `not_found` if no such drift is open.
  Task<Status> release(std::string drift_id, std::string who);

 private:
  /// Loads the drift's resource, changes its claim and commits it; after a conflict with another commit it starts over,
  /// three times at most. Empty `until`: the claim ends.
  Task<Status> write_claim(std::string drift_id, std::string who, std::optional<Nanos> until);

  core::Reader& reader_;
  core::Store& store_;
  const Clock& clock_;
};

}  // namespace driftd::delivery
