// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/enforce/brakes.hpp"
#include "core/enforce/plan.hpp"
#include "core/ports/enforcing.hpp"
#include "core/ports/session.hpp"
#include "engine/extras.hpp"

namespace driftd::engine {

struct Context;
class Ledger;

/// What a try came to: an operation, at its end or not, or the reason why none was begun.
struct EnforcementTry {
  std::optional<core::Enforcement> operation;
  std::optional<core::Hold> hold;
};

/// The steps of one enforcement: read → dry run → planned → applying → the write → applied → read → done, or taken
/// back. Each step is committed with its audit line before the next begins, so that after a kill at any point settle()
/// finds out how it ended. Call it under the runner's cycle mutex; the brakes are the caller's.
class EnforcementSteps {
 public:
  EnforcementSteps(std::shared_ptr<Context> context, Ledger& ledger, core::Session& session);

  /// Puts the values of an open drift back. `dry_run`: ends after the dry run and stores nothing.
  Task<Result<EnforcementTry>> carry_out(core::Drift drift, core::EnforcementCause cause, core::Asked asked,
                                         bool dry_run);
  /// Finds out by a reading how an open operation ended, and goes on where it is safe. It stays open while the resource
  /// cannot be read or the provider asks for patience.
  Task<Status> settle(core::Enforcement operation);

 private:
  /// A reading of now, judged; the drift still has the same values.
  struct Fresh {
    core::StoredResource stored;
    core::Observation seen;
    std::vector<core::Change> plan;
  };
  Task<Result<Fresh>> look_again(core::Drift drift);
  Task<Result<std::optional<core::Observation>>> read(core::ResourceId id);  ///< empty: it is gone
  Task<Status> judge(core::Observation seen, Moment asked);
  core::Enforcement make_operation(const core::Drift& drift, const Fresh& fresh, core::EnforcementCause cause,
                                   const core::Asked& asked) const;
  Task<Result<core::Enforcement>> write(core::Enforcement operation, core::EnforcementState state, std::string text);
  /// Commits the plan only if the row still is the one that was read. From then on no decision is made on it
  /// (Runner::decide), and one that was under way meets a `conflict`.
  Task<Result<core::Enforcement>> write_plan(core::Enforcement operation, core::StoredResource row, core::Asked asked);
  Task<Result<core::Enforcement>> apply(core::Enforcement operation, core::Observation seen);
  Task<Result<core::Enforcement>> take_answer(core::Enforcement operation, core::ApplyOutcome answer);
  Task<Status> settle_found(core::Enforcement operation, core::Observation seen);
  Task<Status> settle_mixed(core::Enforcement operation, std::string version, core::StandingReport standing);
  Task<Status> roll_back(core::Enforcement operation, std::vector<core::Change> back, std::string version,
                         std::string why);
  std::string why_off() const;
  /// Asks which system answers now: a cycle may have begun minutes ago. Returns why nothing may be written to it; empty
  /// if it is the accepted one, or if none of its kind says which it is.
  Task<std::string> why_other_system();
  std::string why_not_back(const core::Enforcement& operation) const;
  bool is_outside_window(const core::Enforcement& operation) const;

  std::shared_ptr<Context> context_;
  Ledger& ledger_;
  core::Session& session_;
};

/// Returns true if the provider of this backend can put values back.
bool can_apply(const Ledger& ledger);

}  // namespace driftd::engine
