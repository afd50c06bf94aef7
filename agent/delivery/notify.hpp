// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "core/ports/reader.hpp"
#include "core/ports/store.hpp"

namespace driftd::delivery {

/// What a person is asked about one or more pending drifts; here always one drift each. The drift is the decision
/// record: a notification is made from it when it is looked at and stored nowhere.
struct Notification {
  std::string id;  ///< of its first drift
  std::vector<std::string> drift_ids;
  std::string backend, resource, change_class;
  std::string title, message;
  std::vector<std::string> actions;  ///< APPROVE, REJECT, IGNORE; against an expectation without APPROVE
  std::string digest;                ///< a decision binds to it
  Nanos opened_ns = 0;
  std::string claimed_by;  ///< empty: free, or the lease ran out
  std::optional<Nanos> claim_until_ns;
  bool stale = false;  ///< the value cannot be read now
};

/// Redacted; `now_ns` decides whether a claim still holds. Pure.
Notification make_notification(const core::DriftRow& row, Nanos now_ns);

/// The queue of what waits for a decision. Core thread; reader, store and clock outlive it.
class Notifications {
 public:
  Notifications(core::Reader& reader, core::Store& store, const Clock& clock)
      : reader_(reader),
        store_(store),
        clock_(clock) {}
  /// Oldest first; `backend` a name or glob, empty: all.
  Task<Result<std::vector<Notification>>> list(std::string backend, int limit);
  /// Takes the next free notification of the list for `who`; `not_found`: none is free. After `lease` it is free again.
  Task<Result<Notification>> claim_next(std::string who, std::chrono::seconds lease);
  /// Takes this one, or prolongs one's own claim. `conflict` names who has it; `not_found`: no such drift is open.
  Task<Status> claim(std::string drift_id, std::string who, std::chrono::seconds lease);
  /// Gives it back; `conflict`: somebody else has it.
  Task<Status> release(std::string drift_id, std::string who);

 private:
  Task<Status> write_claim(std::string drift_id, std::string who, std::optional<Nanos> until);

  core::Reader& reader_;
  core::Store& store_;
  const Clock& clock_;
};

}  // namespace driftd::delivery
