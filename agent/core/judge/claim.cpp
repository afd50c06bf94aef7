// SPDX-License-Identifier: Apache-2.0
// Claims: who looks after a drift, for how long.
#include <algorithm>

#include "core/judge/judge.hpp"

namespace driftd::core {

bool is_claimed(const Drift& drift, Nanos now_ns) {
  return !drift.claimed_by.empty() && drift.claim_until_ns && *drift.claim_until_ns > now_ns;
}

Result<StoredResource> claim(const StoredResource& stored, const std::string& drift_id, const Claim& claim) {
  StoredResource out = stored;
  const auto found =
      std::find_if(out.open.begin(), out.open.end(), [&](const Drift& drift) { return drift.id == drift_id; });
  if (found == out.open.end()) {
    return fail(Code::not_found, "no open drift " + drift_id + " on " + render(stored.id) +
                                     ": it was decided, reverted or superseded since; `driftd drifts` lists the open " +
                                     "ones");
  }
  const std::string name = "drift " + drift_id + " of " + render(stored.id);
  const bool taken = is_claimed(*found, claim.at_ns);
  if (taken && found->claimed_by != claim.actor && !claim.take_over) {
    return fail(Code::conflict, name + " is claimed by " + found->claimed_by + " until " +
                                    render_time(*found->claim_until_ns) +
                                    "; ask them, or take it over with --take-over");
  }
  if (!claim.until_ns && !taken) return fail(Code::conflict, name + " is not claimed: there is nothing to release");
  if (claim.until_ns && *claim.until_ns <= claim.at_ns) {
    return fail(Code::invalid, name + ": the claim would end before it begins (" + render_time(*claim.until_ns) +
                                   "); give a time in the future");
  }
  if (claim.until_ns && found->status != DriftStatus::pending) {
    return fail(Code::conflict, name + " is already " + std::string(render(found->status)) + " by " +
                                    (found->actor.empty() ? "its policy" : found->actor) +
                                    ": it waits for nobody, so there is nothing to claim");
  }
  found->claimed_by = claim.until_ns ? claim.actor : "";
  found->claim_until_ns = claim.until_ns;
  return out;
}

}  // namespace driftd::core
