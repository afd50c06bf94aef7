// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>

#include "http/http.hpp"

namespace driftd::kube {

/// Credential for the API server. At most one is set; none means anonymous or a client certificate.
struct Identification {
  std::string token_reference;  ///< reference for the host's secret()
  std::string token_file;       ///< read again every minute and when it is rejected
  std::string token;            ///< literal token of a kubeconfig
};

/// How to reach one API server, and how patient to be with it.
struct Connection {
  std::string server;  ///< `https://host:port`, maybe with a path; no slash at the end
  http::Tls tls;       ///< without the certificate of an ExecCredential
  Identification identification;
  std::size_t page = 500;       ///< objects in one page
  bool streaming_lists = true;  ///< use WatchList where the server has it
  std::chrono::milliseconds connect{5000}, call{20'000};
  /// a watch without any data for this long is broken; bookmarks come every minute
  std::chrono::milliseconds silence{90'000};
  /// Answers of another cluster than the one that answered first are refused (ClusterGuard). Needs the right to get the
  /// namespace kube-system; without it nothing is checked.
  bool guards_cluster = true;
  std::string user_agent = "driftd-k8s/0.1";
};

/// The folder that Kubernetes mounts into each Pod.
inline constexpr const char* kServiceAccount = "/var/run/secrets/kubernetes.io/serviceaccount";

/// Takes the CA and the token of a Pod's service account from `folder`; the server is `https://kubernetes.default.svc`.
void use_service_account(Connection& connection, const std::string& folder = kServiceAccount);

/// How a kubeconfig is used.
struct KubeconfigUse {
  std::string folder;     ///< base of its relative paths
  std::string context{};  ///< empty: its current-context
  bool insecure = false;  ///< insecure-skip-tls-verify is allowed
  bool user = true;       ///< false: the credential comes from elsewhere
  /// False: entries that name files are refused. Whoever wrote the text would otherwise choose which file of this
  /// machine is read and sent.
  bool files = true;
  std::string where = "settings.kubeconfig";  ///< begins the text of a failure
};

/// Fills server, TLS and credential from the text of a kubeconfig. Throws INVALID for exec plugins and other
/// unsupported entries; the text says what to do instead.
void apply_kubeconfig(Connection& connection, const std::string& yaml, const KubeconfigUse& use);

/// Returns the text of a kubeconfig file, 1 MiB at most. Throws INVALID with `where` if it cannot be read.
std::string read_kubeconfig(const std::string& path, const std::string& where = "settings.kubeconfig");

}  // namespace driftd::kube
