// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/clock.hpp"
#include "core/ports/reader.hpp"

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
  std::string approvals;                        ///< `1 of 2`; empty if one is enough
};

/// Returns the notification of a drift, redacted. `now_ns` decides whether its claim still holds. Pure.
Notification make_notification(const core::DriftRow& row, Nanos now_ns);

/// The queue of drifts that wait for a decision. Core thread. Reader and clock must outlive it.
class ApprovalQueue {
 public:
  ApprovalQueue(core::Reader& reader, const Clock& clock) : reader_(reader), clock_(clock) {}
  /// Returns the pending drifts, oldest first. `backend` is a name or a glob; empty: all backends.
  /// Fails only with an error of the store.
  Task<Result<std::vector<Notification>>> list(std::string backend, int limit);

 private:
  core::Reader& reader_;
  const Clock& clock_;
};

}  // namespace driftd::delivery
