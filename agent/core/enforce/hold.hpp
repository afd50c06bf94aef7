// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "core/resource.hpp"

namespace driftd::core {

/// Why a drift is not put back now. The names are those of the metric and of the API.
enum class HoldReason {
  off,          ///< the global switch, by file or by command
  not_allowed,  ///< the configuration does not allow it, globally or for this backend
  stopped,      ///< stopped until a person lifts it: a fight, or a stop by hand
  refused,      ///< it can never be put back, or the system refused these values
  unresolved,   ///< an earlier operation on the resource has no known end
  owned,        ///< the resource bears the mark of another owner
  too_young,    ///< the value has not stood for the minimum age
  window,       ///< no maintenance window is open
  tries,        ///< too many calls for this resource lately
  cycle_limit,  ///< this cycle has changed its maximum
  hour_limit,   ///< the last hour has had its maximum
  canary,       ///< another resource gets the same change first
  later         ///< the system cannot be asked now, or asked for patience
};
std::string_view render(HoldReason reason);

struct Hold {
  HoldReason reason = HoldReason::later;
  std::string text;            ///< for people, with the next step
  std::optional<Nanos> until;  ///< absent if only a person or another state of things ends it
  ResourceId resource = {};    ///< of the drift that is held; empty until the engine notes it
};

}  // namespace driftd::core
