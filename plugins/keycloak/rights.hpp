// SPDX-License-Identifier: Apache-2.0
// Which role of Keycloak allows what, and the command that grants it.
#pragma once

#include <string>
#include <string_view>

#include "keycloak/settings.hpp"

namespace driftd::keycloak {

/// Returns the role that lists this kind: `view-clients`. `kind` may also be `admin-events`. Pure.
std::string role_for(std::string_view kind);
/// Returns the command that grants the role in `realm` to the account of the settings. Pure.
std::string grant_command(const Login& login, const std::string& realm, const std::string& role);
/// Returns the command that turns admin events on in `realm`. Pure.
std::string events_command(const std::string& realm);

}  // namespace driftd::keycloak
