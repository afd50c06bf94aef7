// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "base/result.hpp"
#include "core/audit.hpp"

namespace driftd::core {

struct Drift;
struct Judgement;
struct StoredResource;

/// A decision on a drift.
struct Decision {
  enum class Verb { approve, reject, ignore, undo, retire };
  Verb verb = Verb::approve;
  std::string actor, reason;
  std::optional<std::string> digest;  ///< of the values that the person saw
  std::optional<Nanos> expires_ns;    ///< when the decision ends and the drift is pending again
  Nanos at_ns = 0;
  Caller caller;             ///< the process that asked, for the audit log
  bool take_over = false;    ///< decide although somebody else has claimed the drift
  int approvals_needed = 1;  ///< as the policy says now; the drift may have been judged under an older one
  std::string link;          ///< hash of the link that it came by, which is used up with it; empty: it came by none
};

/// A person's announcement to look after a drift for a while, or its end.
struct Claim {
  std::string actor, reason;
  std::optional<Nanos> until_ns;  ///< absent: the claim is released
  Nanos at_ns = 0;
  Caller caller;
  bool take_over = false;  ///< although somebody else has claimed it
  std::string link;        ///< as in Decision
};

/// Renders the changes of a drift for a message: `path old → new`, redacted and shortened.
std::string render_changes(const Drift& drift);
/// Applies a decision. Returns `not_found` if there is no such open drift (it was reverted, superseded or approved
/// since). Returns `conflict` if the values changed since, if the drift is already decided or claimed by somebody else,
/// or if an approval meets a drift against an expectation. Returns `invalid` if the expiry is in the past or on an
/// approval that needs no other, or if an approval, rejection or ignore has no digest. If the policy asks for several
/// approvals, each but the last leaves the drift pending; one of the same actor, or of who wrote the value, is a
/// `conflict`. Undo takes back a rejection, an ignore, or one approval of several. Pure.
Result<Judgement> decide(const StoredResource& stored, const std::string& drift_id, const Decision& decision);

/// Undoes the approval that ended a drift: the former values are the baseline again, and the drift is pending. Returns
/// `conflict` if the baseline is no longer what the approval made, or if the value moved since. Pure.
Result<Judgement> undo_approval(const StoredResource& stored, const Drift& approved, const Decision& decision);

/// Returns true if somebody has claimed the drift and the claim has not run out.
bool is_claimed(const Drift& drift, Nanos now_ns);
/// Claims or releases an open drift. Returns `conflict` if somebody else has it, and `invalid` for a claim that ended
/// before it began. Pure.
Result<StoredResource> claim(const StoredResource& stored, const std::string& drift_id, const Claim& claim);

/// Returns how many persons have approved the values that the drift has now.
int approvals_given(const Drift& drift, Nanos now_ns);

}  // namespace driftd::core
