// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <mutex>
#include <string>

#include "http/client.hpp"
#include "kube/cluster_guard.hpp"
#include "kube/connection.hpp"
#include "kube/exec_credential.hpp"
#include "kube/retry_after.hpp"

namespace driftd::kube {

/// Requests to the API server, with its credential and options. Thread-safe.
class Api {
 public:
  /// `connection` must outlive it.
  explicit Api(const Connection& connection) : connection_(connection) {}

  /// Options for a client whose answers are believed: the cluster behind each of its new connections is checked first
  /// (ClusterGuard), unless the connection says that it is not.
  http::Options options(sdk::Call& call);
  /// Options for any other client. Throws UNAUTHENTICATED if no credential can be read.
  http::Options bare_options(sdk::Call& call);
  /// TLS settings with the client certificate of the current credential, if it has one.
  http::Tls tls(sdk::Call& call);
  const Connection& connection() const { return connection_; }
  /// Builds a GET request with the current credential. Throws UNAUTHENTICATED if no credential can be read or it has
  /// expired.
  http::Request get(sdk::Call& call, const std::string& path_and_query);
  /// A request sent at `sent_ns` got 401. Rereads the credential; returns true if it changed since that request, so a
  /// retry makes sense.
  bool reread_credential(sdk::Call& call, std::int64_t sent_ns);
  ClusterGuard& cluster_guard() { return cluster_guard_; }
  RetryAfter& retry_after() { return retry_after_; }

 private:
  /// Returns the current credential. Throws UNAUTHENTICATED if it has expired or cannot be read.
  Credential credential(sdk::Call& call);
  std::string token_of_file(sdk::Call& call);               ///< at most one minute old
  void read_token(sdk::Call& call);                         ///< from the file; under the mutex
  void note(sdk::Call& call, std::string_view credential);  ///< when the credential changed; under the mutex
  std::string read_token_file() const;                      ///< throws UNAUTHENTICATED; at most 64 KiB
  void check_cluster(sdk::Call& call);                      ///< on each new connection, over another one

  const Connection& connection_;
  ClusterGuard cluster_guard_;
  RetryAfter retry_after_;
  std::mutex mutex_;                                 ///< guards the members below
  std::string cached_;                               ///< content of the token file
  std::size_t used_ = 0;                             ///< hash of the last credential
  std::int64_t changed_ns_ = 0;                      ///< when the credential last changed
  std::chrono::steady_clock::time_point read_at_{};  ///< when the token file was read
};

/// By custom the uid of this object is the identity of a cluster.
inline constexpr const char* kSystemPath = "/api/v1/namespaces/kube-system";

/// Returns the shortened message of a Status answer: `secrets is forbidden: User "x" cannot list resource "secrets" …`.
std::string message_of(const std::string& body);
/// Returns the `reason` of a Status answer, `Expired`; empty if the body is not a Status.
std::string reason_of(const std::string& body);

/// Returns an error answer as a Failure of `kind`; a 403 names `right`. A 404 is UNSUPPORTED: this server does not
/// serve the type. A 410 is CURSOR_EXPIRED.
sdk::Failure refusal(const http::Response& response, const std::string& what, const std::string& kind,
                     const std::string& right);

/// Sends a GET request, which `shape` may change into any other; sends it once more if the credential was rejected and
/// there is a newer one. While the server's Retry-After for this path lasts, nothing is sent and the response is a 429
/// made here.
http::Response send_request(sdk::Call& call, Api& api, http::Client& client, const std::string& path_and_query,
                            const std::function<void(http::Request&)>& shape = {});

}  // namespace driftd::kube
