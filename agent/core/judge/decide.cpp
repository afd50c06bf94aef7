// SPDX-License-Identifier: Apache-2.0
// Applies a person's decision to a drift.
#include <algorithm>

#include "base/escape.hpp"
#include "core/judge/stages.hpp"
#include "core/redact.hpp"

namespace driftd::core {
namespace {

using Verb = Decision::Verb;

/// Checks the decision itself: its digest and its expiry.
Status check_decision(const Drift& drift, const Decision& decision) {
  const bool needs_none = decision.verb == Verb::undo || decision.verb == Verb::retire;
  if (!decision.digest && !needs_none) {
    return fail(Code::invalid,
                name_of(drift) + ": the decision does not say which value it is about; expected its digest");
  }
  if (decision.digest && *decision.digest != drift.digest) {
    return fail(Code::conflict, name_of(drift) + ": its value moved since you looked; now it is " +
                                    render_changes(drift) + "; look again, then decide");
  }
  if (!decision.expires_ns) return {};
  const bool waits = decision.verb == Verb::approve && drift.approvals_needed > 1;  // for the approval of another
  if (decision.verb != Verb::reject && decision.verb != Verb::ignore && !waits) {
    return fail(Code::invalid, name_of(drift) + ": only a rejection or an ignore can expire, or an approval that " +
                                   "waits for another one; leave the expiry out");
  }
  if (*decision.expires_ns <= decision.at_ns) {
    return fail(Code::invalid, name_of(drift) + ": the decision would expire before it is made (" +
                                   render_time(*decision.expires_ns) + "); give a time in the future");
  }
  return {};
}

/// Checks that the state of the drift allows the decision.
Status check_state(const Drift& drift, const Decision& decision) {
  if (decision.verb == Verb::retire) return {};
  if (is_claimed(drift, decision.at_ns) && drift.claimed_by != decision.actor && !decision.take_over) {
    return fail(Code::conflict, name_of(drift) + " is claimed by " + drift.claimed_by + " until " +
                                    render_time(*drift.claim_until_ns) +
                                    "; ask them, or decide all the same with --take-over");
  }
  if (decision.verb == Verb::undo) {
    if (drift.decided_ns || !drift.approvals.empty()) return {};
    return fail(Code::conflict, name_of(drift) + " is not decided: there is nothing to undo");
  }
  if (drift.decided_ns) {
    return fail(Code::conflict, name_of(drift) + " is already " + std::string(render(drift.status)) + " by " +
                                    drift.actor + "; undo that first");
  }
  // Approving a creation accepts the whole body, so the body must be known; approving changes accepts only those
  // values.
  if (decision.verb == Verb::approve && drift.operation == Operation::created && drift.stale_since_ns) {
    return fail(Code::conflict,
                name_of(drift) + ": since " + render_time(*drift.stale_since_ns) +
                    " it cannot be read whole, so nobody has seen what would be accepted; decide when it is " +
                    "read again, or reject or ignore it");
  }
  if (decision.verb == Verb::approve && drift.against == Against::expectation) {
    return fail(Code::conflict,
                name_of(drift) + " deviates from an expectation of the config or of a source (a " +
                    "Terraform state), which no approval can move; change `expect:` or what declares it, or " +
                    "reject or ignore the drift");
  }
  return {};
}

DriftStatus status_of(Verb verb) {
  switch (verb) {
    case Verb::approve:
      return DriftStatus::approved;
    case Verb::reject:
      return DriftStatus::rejected;
    case Verb::ignore:
      return DriftStatus::ignored;
    case Verb::retire:
      return DriftStatus::retired;
    case Verb::undo:
      break;
  }
  return DriftStatus::pending;
}

/// Writes the decision into the drift. Undo restores the state from before the decision; actor and reason of the undo
/// are kept for the transition and the audit log. An approval that waits for others changes no status.
Status apply_decision(Drift& drift, const StoredResource& row, const Decision& decision) {
  const bool several = decision.verb == Verb::approve && drift.approvals_needed > 1;
  if (several) DRIFTD_CHECK(add_approval(drift, row, decision));
  const bool waits = several && approvals_given(drift, decision.at_ns) < drift.approvals_needed;
  if (decision.verb == Verb::undo && !drift.decided_ns) {
    DRIFTD_CHECK(withdraw_approval(drift, decision));
  } else if (decision.verb == Verb::undo) {
    clear_decision(drift);
  } else if (!waits) {
    drift.status = status_of(decision.verb);
    drift.decided_ns = decision.at_ns;
    drift.expires_ns = decision.verb == Verb::approve ? std::nullopt : decision.expires_ns;
    if (decision.verb != Verb::approve) drift.approvals.clear();
  }
  drift.actor = decision.actor;
  drift.reason = decision.reason;
  drift.updated_ns = decision.at_ns;
  drift.claimed_by.clear();
  drift.claim_until_ns.reset();
  return {};
}

std::string shown_or_absent(const Change& change, const std::optional<std::string>& json) {
  if (!json) return "(absent)";
  return change.redacted ? "[REDACTED]" : presentable_json(*json);
}

}  // namespace

std::string render_changes(const Drift& drift) {
  constexpr std::size_t kMaxListed = 8, kMaxShown = 200;
  std::string out;
  for (std::size_t i = 0; i < std::min(kMaxListed, drift.changes.size()); ++i) {
    const Change& change = drift.changes[i];
    const bool itself = change.path.empty() || change.path == kIdentityPath;
    const auto [before, now] = around_difference(shown_or_absent(change, change.old_value),
                                                 shown_or_absent(change, change.new_value), kMaxShown);
    out += (out.empty() ? "" : ", ") + (itself ? "(" + std::string(render(drift.operation)) + ")" : change.path) + " " +
           before + " → " + now;
  }
  if (drift.changes.size() > kMaxListed) out += ", and " + std::to_string(drift.changes.size() - kMaxListed) + " more";
  return out;
}

Result<Judgement> decide(const StoredResource& stored, const std::string& drift_id, const Decision& decision) {
  Judgement out;
  out.next = stored;
  auto& open = out.next.open;
  const auto found = std::find_if(open.begin(), open.end(), [&](const Drift& drift) { return drift.id == drift_id; });
  if (found == open.end()) {
    return fail(Code::not_found,
                "no open drift " + drift_id + " on " + render(stored.id) +
                    ": it was decided, reverted or superseded since; `driftd drifts` lists the open ones");
  }
  const DriftStatus from = found->status;
  Drift drift = *found;
  if (is_expired(drift, decision.at_ns)) clear_decision(drift);
  drop_void_approvals(drift, decision.at_ns);
  drift.approvals_needed = std::max(drift.approvals_needed, decision.approvals_needed);
  DRIFTD_CHECK(check_decision(drift, decision));
  DRIFTD_CHECK(check_state(drift, decision));
  DRIFTD_CHECK(apply_decision(drift, stored, decision));
  if (drift.status == DriftStatus::approved) {
    DRIFTD_TRY(drift.former, former_baseline(stored, drift));
    DRIFTD_CHECK(accept(out.next, drift));
  }
  if (drift.open()) {
    *found = drift;
  } else {
    open.erase(found);
  }
  std::vector<Change> changes = drift.changes;
  out.transitions.push_back({std::move(drift), from, false, std::move(changes)});
  return out;
}

}  // namespace driftd::core
