// SPDX-License-Identifier: Apache-2.0
// Ids of resources: the realm and the names below it, with `/` between. A name that holds `/` or `%` is escaped, so
// that the realm role `app/admin` and the role `admin` of the client `app` stay two.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace driftd::keycloak {

/// In the order of reading: roles need the clients, and the realm says whether its events can be seen.
inline constexpr std::array<std::string_view, 9> kKinds{
    "realm",           "client_scope", "client", "role", "group", "identity_provider", "authentication_flow",
    "required_action", "component"};

/// Joins the parts to an id: {"orders", "a/b"} → `orders/a%2Fb`.
std::string id_of(const std::vector<std::string>& parts);
/// Splits an id. Returns an empty list if no resource has such an id.
std::vector<std::string> parts_of(std::string_view id);

}  // namespace driftd::keycloak
