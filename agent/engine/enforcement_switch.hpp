// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "core/enforce/operation.hpp"

namespace driftd::engine {

/// The switch of everything that driftd changes by itself. It is asked before each single write. Core thread only.
struct EnforcementSwitch {
  core::EnforcementStop stop;                ///< of the store; lifted: it is on
  std::function<std::string()> stop_file{};  ///< returns why a file stops everything; empty function: there is none
  /// Returns why nothing may be written; empty if it may.
  std::string why_off() const {
    if (const std::string by_file = stop_file ? stop_file() : std::string(); !by_file.empty()) return by_file;
    if (stop.at_ns == 0 || !stop.stands()) return {};
    return "switched off by " + stop.actor + " at " + render_time(stop.at_ns) +
           (stop.reason.empty() ? "" : ": " + stop.reason) + "; `driftd enforce on` lifts it";
  }
};

}  // namespace driftd::engine
