// SPDX-License-Identifier: Apache-2.0
// What a PrismPattern says about itself. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "operator/pattern_bindings.hpp"

namespace driftd::op {

/// What became of the Deployment.
struct Deployed {
  Condition condition;            ///< Deployed
  const nlohmann::json& current;  ///< the Deployment as it is stored; null: there is none
  bool must_be_corrected = false;
};

struct PatternState {
  std::string phase;  ///< Pending, Ready or Error
  std::vector<Condition> conditions;
};

/// Says what is made of the bindings if no Deployment is written: it is awaited, or kept as it was.
Condition unwritten(bool exists);
PatternState judge(const nlohmann::json& pattern, const Bindings& bindings, const Deployed& deployed);

/// Returns the members of the status that the operator writes. `now`: RFC 3339.
nlohmann::json pattern_status_of(const PatternState& state, const nlohmann::json& pattern, const Bindings& bindings,
                                 const Deployed& deployed, const std::string& now);
bool is_pattern_status_shown(const nlohmann::json& status, const nlohmann::json& pattern);

}  // namespace driftd::op
