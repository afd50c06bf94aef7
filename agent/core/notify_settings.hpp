// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace driftd::core {

/// `notifications:` of the configuration (docs/operate.md).
struct NotifySettings {
  bool on = false;
  std::vector<std::string> group_by{"backend"};  ///< backend | kind | class | label:NAME
  std::chrono::seconds group_wait{30};           ///< from the first drift of a group to its notification
  std::chrono::seconds group_interval{300};      ///< between two notifications of a group
  std::chrono::seconds repeat{4 * 3'600};        ///< until a reminder; 0: none
  std::chrono::seconds escalate_after{0};        ///< until an escalation, if nobody claimed; 0: none
  std::size_t listed = 20;                       ///< drifts that one notification lists
  std::size_t max_per_hour = 20;                 ///< beyond it, groups share one summary
  bool operator==(const NotifySettings&) const = default;
};

}  // namespace driftd::core
