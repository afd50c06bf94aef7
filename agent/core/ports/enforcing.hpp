// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/task.hpp"
#include "core/audit.hpp"
#include "core/enforce/hold.hpp"
#include "core/enforce/operation.hpp"
#include "core/enforce/settings.hpp"

namespace driftd::core {

/// Who asks for something about enforcement, and why.
struct Asked {
  std::string actor, reason;
  Caller caller;
  Nanos at_ns = 0;
};

/// Whether driftd may put values back now, and which drifts it holds back and why.
struct EnforcementView {
  std::string off;  ///< why everything is switched off; empty if it is not
  struct Backend {
    std::string name;
    EnforceSettings settings;
    std::map<std::string, Hold> held;            ///< by drift, as the last cycle found it
    std::vector<EnforcementStop> stopped;        ///< resources that wait for a person
    std::vector<Enforcement> open;               ///< operations without an end so far, without bodies
    std::map<std::string, std::uint64_t> ended;  ///< by state, since the start
  };
  std::vector<Backend> backends;
};

/// What people may ask about enforcement. Core thread.
class Enforcing {
 public:
  virtual ~Enforcing() = default;
  /// Puts a drift back now, or with `dry_run` only says what would run; then the operation is not stored. `digest` is
  /// the binding of the drift's values as for a decision. Returns the operation at its end. Fails with `conflict` if a
  /// brake holds it, `invalid` if it can never be put back.
  virtual Task<Result<Enforcement>> enforce(std::string drift_id, std::string digest, bool dry_run, Asked asked) = 0;
  /// Lifts the stop of the drift's resource, and what failed there before no longer counts. Fails with `conflict` if
  /// nothing holds it that a person can lift.
  virtual Task<Status> lift_stop(std::string drift_id, Asked asked) = 0;
  /// The switch of everything. It is stored, so it holds after a restart.
  virtual Task<Status> switch_enforcement(bool on, Asked asked) = 0;
  virtual EnforcementView enforcement() = 0;
};

}  // namespace driftd::core
