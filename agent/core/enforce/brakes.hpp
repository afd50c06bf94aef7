// SPDX-License-Identifier: Apache-2.0
// Whether driftd may put a drift back now. Pure functions; the engine gathers what they need.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/enforce/hold.hpp"
#include "core/enforce/operation.hpp"
#include "core/enforce/settings.hpp"

namespace driftd::core {

/// What a drift wants: the drift, who owns its resource, and the change that it would get.
struct Candidate {
  Drift drift;
  std::vector<Change> plan;   ///< plan_enforcement(); empty if it cannot be put back
  std::string owner, writer;  ///< owner_mark(), writer_of()
  EnforcementCause cause = EnforcementCause::policy;
};

/// Everything that the brakes look at beside the candidate.
struct BrakeState {
  Nanos now_ns = 0, cycle_began_ns = 0;
  std::chrono::seconds local_offset{0};
  std::string off;                                      ///< why everything is switched off; empty if it is not
  const std::vector<Enforcement>* history = nullptr;    ///< of this backend, at least of the last day; in any order
  const std::vector<EnforcementStop>* stops = nullptr;  ///< of this backend
  /// How many other drifts of this backend want a change, by canary_key().
  const std::map<std::string, int>* wanted = nullptr;
};

/// Returns why this candidate must wait; empty if it may go ahead. A person's request passes the minimum age, the
/// maintenance windows and the canary, but nothing else.
std::optional<Hold> hold_of(const Candidate& candidate, const EnforceSettings& settings, const BrakeState& state);

/// The same change of several resources of one kind has the same key: kind, paths and the values to put back.
std::string canary_key(const ResourceId& resource, const std::vector<Change>& plan);

/// If the drift is one round more than settings.rounds, returns the text that names both writers: `us`, and who wrote
/// what stands now, if the system tells. Empty if it is not a fight.
std::string fight_of(const Candidate& candidate, const EnforceSettings& settings, const BrakeState& state,
                     const std::string& us);

}  // namespace driftd::core
