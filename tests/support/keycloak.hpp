// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/process.hpp"

namespace driftd::test {

/// A real Keycloak on a free loopback port, with a database file of its own. It ends with the object. One thread.
///
/// Its administrator is `admin` with the password `admin`, in realm master. admin() speaks to the admin API as that
/// user; a status of 400 or more throws.
class KeycloakServer {
 public:
  KeycloakServer();  ///< starts it; throws if it does not start
  ~KeycloakServer();
  KeycloakServer(const KeycloakServer&) = delete;
  KeycloakServer& operator=(const KeycloakServer&) = delete;

  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  void start();
  void stop();  ///< sends SIGTERM and waits for its end
  std::string log() const { return read_file(dir_.file("server.log")); }

  /// Sends a request to /admin/realms + `path` and returns the answer's body; null if it has none.
  nlohmann::json admin(const std::string& method, const std::string& path, const nlohmann::json& body = nullptr);
  nlohmann::json get(const std::string& path) { return admin("GET", path); }
  /// Creates a realm whose admin events are on.
  void make_realm(const std::string& realm);
  /// Returns the UUID of the client with this clientId.
  std::string client_uuid(const std::string& realm, const std::string& client_id);
  /// Makes the service account `driftd` in the realm, with these roles on the realm and no others.
  void make_account(const std::string& realm, const std::string& secret, const std::vector<std::string>& roles);
  void set_roles(const std::string& realm, const std::vector<std::string>& roles);
  /// Turns admin events on or off, as kcadm.sh does.
  void set_events(const std::string& realm, bool enabled);

  /// Runs statements in its database, between stop() and start(). Throws with its words if one fails.
  void sql(const std::string& statements);
  /// Runs commands that begin with `kcadm.sh` by the real one, one after the other. Throws with its words if one fails.
  void kcadm(const std::vector<std::string>& commands);

  /// Returns the requests below /admin that the server has answered since it started, oldest first, without those of
  /// admin(): `GET /admin/realms/orders/clients?first=0`.
  std::vector<std::string> requests() const;

 private:
  std::string token();

  TempDir dir_;
  int port_ = 0, management_port_ = 0;
  std::string token_;
  std::chrono::steady_clock::time_point token_made_{};
  Child child_;
};

}  // namespace driftd::test
