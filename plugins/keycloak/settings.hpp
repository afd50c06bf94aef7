// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "driftd/sdk/scope.hpp"
#include "http/http.hpp"

namespace driftd::keycloak {

/// The account that reads. With a user name it logs in by password, otherwise as the service account of the client.
struct Login {
  std::string realm = "master";         ///< realm that holds the account
  std::string client_id = "admin-cli";  ///< client that asks for the token
  std::string client_secret_token;      ///< token of a secret; empty for a public client
  std::string username;                 ///< empty: service account
  std::string password_token;           ///< token of a secret
};

/// Settings of one instance, as in schema.json. Immutable.
struct Settings {
  std::string url;                  ///< without a slash at the end
  std::vector<std::string> realms;  ///< names; empty: all that the account may list
  Login login;
  http::Tls tls;
  bool detection = true;              ///< drift_detection.enabled
  bool remediate = true;              ///< drift_detection.auto_remediate; false: apply refuses
  bool turn_on_admin_events = false;  ///< apply.turn_on_admin_events: the consent to that
  bool use_events = true;             ///< false: `events: off`
  std::string owner_attribute = "driftd.owner";
  std::chrono::milliseconds poll_interval{10'000};  ///< between two questions for admin events
  std::chrono::seconds sweep_interval{300};         ///< between full lists of realms whose events cannot be seen
  std::chrono::seconds event_overlap{60};           ///< how late an event may commit and still be noticed
  std::uint64_t page = 500;                         ///< resources in one answer
  std::chrono::milliseconds connect{5000}, call{20'000};
  sdk::Scope scope;
};

/// Parses the JSON that open() gets. Throws INVALID with the name of the setting.
Settings parse_settings(std::string_view json);

/// Returns a text that differs if cursors of the two settings do not mean the same. Pure.
std::string cursor_scope(const Settings& settings);

}  // namespace driftd::keycloak
