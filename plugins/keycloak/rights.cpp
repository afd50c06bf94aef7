// SPDX-License-Identifier: Apache-2.0
#include "keycloak/rights.hpp"

namespace driftd::keycloak {

std::string role_for(std::string_view kind) {
  if (kind == "client" || kind == "client_scope") return "view-clients";
  if (kind == "group") return "view-users";
  if (kind == "identity_provider") return "view-identity-providers";
  if (kind == "admin-events") return "view-events";
  return "view-realm";
}

std::string grant_command(const Login& login, const std::string& realm, const std::string& role) {
  const std::string user = login.username.empty() ? "service-account-" + login.client_id : login.username;
  // The rights on a realm are roles of a client: its own realm-management, or in realm master one for each realm.
  const std::string client = login.realm == "master" ? realm + "-realm" : "realm-management";
  return "kcadm.sh add-roles -r " + login.realm + " --uusername " + user + " --cclientid " + client + " --rolename " +
         role;
}

std::string events_command(const std::string& realm) {
  return "kcadm.sh update events/config -r " + realm + " -s adminEventsEnabled=true";
}

}  // namespace driftd::keycloak
