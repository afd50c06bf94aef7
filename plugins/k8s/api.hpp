// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "http/client.hpp"
#include "k8s/cluster_guard.hpp"
#include "k8s/exec_credential.hpp"
#include "k8s/kinds.hpp"
#include "k8s/retry_after.hpp"
#include "k8s/settings.hpp"

namespace driftd::k8s {

/// How the API server is asked. Thread-safe.
class Api {
 public:
  explicit Api(const Settings& settings) : settings_(settings) {}

  /// For a client that tells records: each new connection of it is first asked which cluster it leads to
  /// (ClusterGuard).
  http::Options options(sdk::Call& call);
  /// For a client that does not. UNAUTHENTICATED: the credential cannot be had.
  http::Options bare_options(sdk::Call& call);
  /// With the client certificate that the credential holds now, if it is one.
  http::Tls tls(sdk::Call& call);
  /// A GET of `path_and_query` with who asks. UNAUTHENTICATED: the credential cannot be had, or has expired.
  http::Request get(sdk::Call& call, const std::string& path_and_query);
  /// The credential of a request of then was refused: it is had anew. True: there is another one since that request.
  bool reread_credential(sdk::Call& call, std::int64_t sent_ns);
  ClusterGuard& cluster_guard() { return cluster_guard_; }
  RetryAfter& retry_after() { return retry_after_; }

 private:
  Credential credential(sdk::Call& call);
  std::string token_of_file(sdk::Call& call);
  void read_token(sdk::Call& call);
  void note(sdk::Call& call, std::string_view credential);
  std::string read_token_file() const;
  void check_cluster(sdk::Call& call);

  const Settings& settings_;
  ClusterGuard cluster_guard_;
  RetryAfter retry_after_;
  std::mutex mutex_;
  std::string cached_;           ///< of the token file
  std::size_t used_ = 0;         ///< hash of the credential as it was had last
  std::int64_t changed_ns_ = 0;  ///< when that was another than before
  std::chrono::steady_clock::time_point read_at_{};
};

/// The uid of this object is a cluster's identity by custom.
inline constexpr const char* kSystemPath = "/api/v1/namespaces/kube-system";

/// What a Status answer says, shortened: `secrets is forbidden: User "x" cannot list resource "secrets" …`.
std::string message_of(const std::string& body);
/// The `reason` of a Status answer, `Expired`; empty: it is none.
std::string reason_of(const std::string& body);

/// That answer as a Failure of `kind`; 403 names `right`. A 404 is UNSUPPORTED: the type is not served here. 410 is
/// CURSOR_EXPIRED.
sdk::Failure refusal(const http::Response& response, const std::string& what, const std::string& kind,
                     const std::string& right);

/// Sends, as `shape` changed the request; once more where a credential was refused and there is a newer one. While the
/// server's Retry-After for this path lasts it is not asked: the answer is a 429 of our own.
http::Response send_get(sdk::Call& call, Api& api, http::Client& client, const std::string& path_and_query,
                        const std::function<void(http::Request&)>& shape = {});

/// The answer to that as JSON. UNSUPPORTED for 404 and otherwise as `refusal`; CORRUPT.
nlohmann::json get_json(sdk::Call& call, Api& api, http::Client& client, const std::string& path_and_query,
                        const std::string& kind, const std::string& right);

}  // namespace driftd::k8s
