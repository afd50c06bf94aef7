// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "http/client.hpp"
#include "k8s/kinds.hpp"
#include "k8s/settings.hpp"

namespace driftd::k8s {

/// How the API server is asked. Thread-safe.
class Api {
 public:
  explicit Api(const Settings& settings) : settings_(settings) {}

  http::Options options() const;
  /// A GET of `path_and_query` with who asks. UNAUTHENTICATED: the token cannot be had.
  http::Request get(sdk::Call& call, const std::string& path_and_query);
  /// The token was refused: a file is read anew for the next request. True: there is another one than before.
  bool refused(sdk::Call& call);

 private:
  std::string token(sdk::Call& call);
  std::string read_token_file() const;

  const Settings& settings_;
  std::mutex mutex_;
  std::string cached_;
  std::chrono::steady_clock::time_point read_at_{};
};

/// What a Status answer says, shortened: `secrets is forbidden: User "x" cannot list resource "secrets" …`.
std::string message_of(const std::string& body);
/// The `reason` of a Status answer, `Expired`; empty: it is none.
std::string reason_of(const std::string& body);

/// That answer as a Failure of `kind`; 403 names `right`. A 404 is UNSUPPORTED: the type is not served here. 410 is
/// CURSOR_EXPIRED.
sdk::Failure refusal(const http::Response& response, const std::string& what, const std::string& kind,
                     const std::string& right);

/// Sends; once more where a token was refused and there is a newer one.
http::Response ask(sdk::Call& call, Api& api, http::Client& client, const std::string& path_and_query);

/// The answer to that as JSON. UNSUPPORTED for 404 and otherwise as `refusal`; CORRUPT.
nlohmann::json ask_json(sdk::Call& call, Api& api, http::Client& client, const std::string& path_and_query,
                        const std::string& kind, const std::string& right);

}  // namespace driftd::k8s
