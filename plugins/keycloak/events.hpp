// SPDX-License-Identifier: Apache-2.0
// Admin events of Keycloak, and which resources each of them may have changed. Pure.
#pragma once

#include <compare>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

namespace driftd::keycloak {

/// One admin event, without its representation, which may hold secrets.
struct AdminEvent {
  std::string id;             ///< empty on servers that give it none
  std::int64_t time_ms = 0;   ///< by the server's clock
  std::string operation;      ///< CREATE, UPDATE, DELETE, ACTION
  std::string resource_type;  ///< CLIENT, REALM_ROLE …
  std::string path;           ///< `clients/UUID/roles/admin`; empty for the realm itself
  std::string user, client;   ///< who did it, as UUIDs
  /// Tells events apart, also those of the same millisecond.
  std::string key() const;
};

/// Parses the answer of /admin-events. Throws CORRUPT if it is not a list of events.
std::vector<AdminEvent> parse_events(const nlohmann::json& answer);

/// The query that leaves out what never concerns a kind of ours, such as users: `resourceTypes=…&resourceTypes=…`.
const std::string& event_filter();

/// What must be read again.
struct Touch {
  enum class How {
    uuid,   ///< the resource with this UUID
    name,   ///< the resource with this name; for a role of a client `UUID of the client/name`, both escaped
    sweep,  ///< every resource of the kind in this realm
  };
  std::string kind;
  How how = How::sweep;
  std::string key{};  ///< empty for a sweep
  auto operator<=>(const Touch&) const = default;
};

/// Returns what the event may have changed, besides the realm itself. Nothing if it concerns no kind of ours. A path
/// that is not known becomes a sweep of the kind that the resource type names.
std::vector<Touch> touches_of(const AdminEvent& event);

/// The touches of several events, each once. A kind that is swept needs no single ones.
std::set<Touch> touches_of(const std::vector<AdminEvent>& events);

}  // namespace driftd::keycloak
