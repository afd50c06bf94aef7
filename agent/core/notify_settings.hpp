// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace driftd::core {

/// `notifications.links`: links in messages that decide.
struct LinkSettings {
  std::string base_url;  ///< what the links begin with, without a slash at its end; empty: there are no links
  std::string listen = "127.0.0.1:7481";  ///< loopback host:port behind that address
  std::vector<std::string> sinks;         ///< whose messages have links
  std::vector<std::string> actions{"approve", "reject", "ignore", "claim"};
  std::chrono::seconds expire_after{24 * 3'600};
  bool operator==(const LinkSettings&) const = default;
};

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
  LinkSettings links;
  bool operator==(const NotifySettings&) const = default;
};

}  // namespace driftd::core
