// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "core/event/event.hpp"

namespace driftd::core {

/// An event to be numbered and stored in a commit, with the sinks that get it.
struct EventDraft {
  std::variant<BackendEvent, AgentEvent> event;
  std::vector<std::string> sinks;
};

}  // namespace driftd::core
