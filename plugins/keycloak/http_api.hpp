// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "http/client.hpp"
#include "keycloak/api.hpp"
#include "keycloak/settings.hpp"
#include "keycloak/token.hpp"

namespace driftd::keycloak {

/// The admin API over HTTP. Keeps connections and an access token, which it renews before it ends and once more when a
/// request is refused with it. Thread-safe.
class HttpApi final : public AdminApi {
 public:
  /// `settings` must outlive it.
  explicit HttpApi(const Settings& settings);

  Answer get(sdk::Call& call, const std::string& path) override;
  std::vector<Answer> get_all(sdk::Call& call, const std::vector<std::string>& paths) override;
  Answer change(sdk::Call& call, const WriteRequest& write) override;
  std::int64_t server_ms(sdk::Call& call) override;
  /// Asks for the public description of the login's realm, on a connection of its own, without a token. Returns the
  /// HTTP status. Throws UNAVAILABLE.
  int probe(sdk::Call& call, std::chrono::milliseconds max_time) const;

 private:
  using Steady = std::chrono::steady_clock;
  using Client = std::unique_ptr<http::MultiClient>;

  /// Returns the bearer of a token that is still valid. `refused` is one that the server did not accept: it is not
  /// used again.
  std::string bearer(sdk::Call& call, const std::string& refused = {});
  AccessToken login(sdk::Call& call);
  http::Request admin_request(const std::string& path, const std::string& bearer) const;
  /// Sends one request and waits for its end.
  http::Response send(sdk::Call& call, http::Request request);
  Client take();
  void park(Client client);
  Answer answer_of(http::Response response, const std::string& what) const;
  Answer written(http::Response response, const std::string& what) const;

  const Settings& settings_;
  const http::Options options_;
  std::mutex token_mutex_;  ///< held while a token is asked for, so that only one call asks
  AccessToken token_;
  Steady::time_point token_made_{};
  std::mutex mutex_;          ///< guards `idle_`
  std::vector<Client> idle_;  ///< clients whose last request did not throw
};

}  // namespace driftd::keycloak
