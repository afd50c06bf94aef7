// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>

#include <memory>

#include "support/keycloak.hpp"
#include "support/provider_probe.hpp"

namespace driftd::test {

/// A server that all tests of the process share, and a realm of its own for each test. The service account `driftd` of
/// that realm has the README's roles and no others.
class SharedKeycloak : public testing::Test {
 protected:
  static constexpr const char* kSecret = "secret-canary-of-keycloak";
  static KeycloakServer& server();
  static const std::vector<std::string>& readme_roles();
  SharedKeycloak();
  /// Uses the realm of this name, which the first test makes and all others share.
  explicit SharedKeycloak(const std::string& realm);

  /// Settings of the realm's service account; secrets() has the secret that its token stands for.
  nlohmann::json settings() const;
  static std::map<std::string, std::string> secrets() { return {{"token-1", kSecret}}; }
  std::unique_ptr<ProviderProbe> probe(const nlohmann::json& more = nlohmann::json::object()) const;
  /// Creates a client and returns its UUID.
  std::string make_client(const std::string& client_id, nlohmann::json more = nlohmann::json::object()) const;
  std::string path(const std::string& rest) const { return "/" + realm_ + rest; }
  std::string id(const std::string& rest) const { return realm_ + "/" + rest; }
  nlohmann::json admin(const std::string& method, const std::string& rest, const nlohmann::json& body = nullptr) const {
    return server().admin(method, path(rest), body);
  }
  nlohmann::json get(const std::string& rest) const { return admin("GET", rest); }
  /// Lists everything, then watches until the resource was emitted because of `change` (or as gone). Returns what the
  /// watch emitted.
  Collected watch_change(ProviderProbe& probe, const std::string& kind, const std::string& id,
                         const std::function<void()>& change, bool gone = false) const;

  std::string realm_;  ///< of this test
};

}  // namespace driftd::test
