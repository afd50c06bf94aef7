// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "core/enforce/window.hpp"

namespace driftd::core {

/// `enforce` of the configuration for one backend: what it says itself, else what the global section says.
struct EnforceSettings {
  bool allowed_globally = false, allowed_here = false;  ///< both must be true, also for what a person asks for
  std::chrono::seconds minimum_age{3'600};              ///< of the drift's current value; not for a person's request
  std::vector<MaintenanceWindow> windows;               ///< empty: at any time; not for a person's request
  int per_cycle = 5, per_hour = 20;                     ///< maximum number of operations of this backend
  int tries = 5;                                        ///< maximum number of calls for one resource in `tries_within`
  std::chrono::seconds tries_within{600};
  int rounds = 3;  ///< so often a value is put back that somebody changes again; then it is a fight
  std::chrono::seconds rounds_within{86'400};
  std::string owner;  ///< a resource that bears the mark of another owner is not touched
  bool allowed() const { return allowed_globally && allowed_here; }
  friend bool operator==(const EnforceSettings&, const EnforceSettings&) = default;
};

}  // namespace driftd::core
