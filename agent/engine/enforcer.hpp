// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/ports/enforcing.hpp"
#include "engine/enforcement_steps.hpp"

namespace driftd::engine {

/// Puts the drifts of one backend back whose policy is `enforce`, as far as the brakes let it. Owned by the runner, and
/// called under its cycle mutex.
class Enforcer {
 public:
  Enforcer(std::shared_ptr<Context> context, Ledger& ledger, core::Session& session);

  /// Finds out how open operations ended: before anything of the system is judged in a new process, and in each cycle.
  Task<Status> settle_open();
  /// After a cycle: asks the brakes about each due drift, and carries out those that may go ahead.
  Task<Status> run();
  /// What a person asks for.
  Task<Result<core::Enforcement>> ask(core::StoredResource resource, std::string drift_id, bool dry_run,
                                      core::Asked asked);
  Task<Status> lift_stop(core::StoredResource resource, std::string drift_id, core::Asked asked);
  core::EnforcementView::Backend view();
  /// Returns when the provider asked to be called again; 0 if it did not.
  std::chrono::milliseconds next_call() const;

 private:
  Task<Result<std::vector<core::Candidate>>> candidates();
  core::Candidate candidate_of(const core::StoredResource& row, const core::Drift& drift);
  Task<Status> consider(core::Candidate candidate, const std::map<std::string, int>& wanted);
  core::BrakeState brakes(const std::map<std::string, int>& wanted) const;
  /// Stops the resource of a fight until a person lifts it. Returns true if it is one.
  Task<Result<bool>> stop_fight(core::Candidate candidate, core::BrakeState state);
  void note(const core::Drift& drift, core::Hold hold);
  /// Returns since when the value stands. A time that is still to come is that of a clock which was set back since:
  /// then it stands since that was noticed.
  Nanos stands_since(const core::Drift& drift);

  std::shared_ptr<Context> context_;
  Ledger& ledger_;
  EnforcementSteps steps_;
  std::map<std::string, core::Hold> held_;  ///< by drift
  std::map<std::string, Nanos> noticed_;    ///< by drift and digest: when a time to come was noticed
  std::set<std::string> unsettled_;         ///< operations whose last reading failed
  core::ResourceId after_;                  ///< where the next cycle begins, if there are more than one cycle looks at
  Nanos cycle_began_ns_ = 0;
};

}  // namespace driftd::engine
