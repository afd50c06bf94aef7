// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "driftd/sdk/scope.hpp"
#include "http/http.hpp"

namespace driftd::k8s {

/// A configured custom type. `fields` maps attribute names to paths in the object (`spec.replicas`,
/// `spec.ports[0].name`); if empty, the whole spec is read.
struct Custom {
  std::string group, version, kind;  ///< as in the object's apiVersion and kind
  std::map<std::string, std::string> fields;
};

/// Credential for the API server. At most one is set; none means anonymous or a client certificate.
struct Identification {
  std::string token_reference;  ///< reference for the host's secret()
  std::string token_file;       ///< read again every minute and when it is rejected
  std::string token;            ///< literal token of a kubeconfig
};

/// Settings of one instance, as in schema.json, with its kubeconfig or service account read. Immutable.
struct Settings {
  std::string server;  ///< `https://host:port`, maybe with a path; no slash at the end
  http::Tls tls;       ///< without the certificate of an ExecCredential
  Identification identification;
  std::vector<std::string> namespaces;                     ///< empty: all
  std::map<std::string, std::string> selectors;            ///< kind → label selector
  std::vector<std::string> labels{"*"}, annotations{"*"};  ///< globs of those that belong to a body
  std::string group = "prism.io";                          ///< API group of PrismBackend and prefix of the labels
  std::string discover = "prism.io/backend=true";
  std::vector<Custom> objects;              ///< custom types to read as kind `object`
  std::vector<std::string> replica_owners;  ///< globs of field managers; `replicas` that they set are not judged
  /// globs of field managers whose fields apply() may overrule
  std::vector<std::string> take_over{"kubectl*"};
  std::string cluster_domain = "cluster.local";  ///< of the names of Services
  std::size_t page = 500;                        ///< objects in one page
  bool streaming_lists = true;                   ///< use WatchList where the server has it
  std::chrono::milliseconds connect{5000}, call{20'000};
  /// a watch without any data for this long is broken; bookmarks come every minute
  std::chrono::milliseconds silence{90'000};
  sdk::Scope scope;
};

/// Parses the JSON that open() gets and reads the kubeconfig that it names. Throws INVALID with the name of the
/// setting.
Settings parse_settings(std::string_view json);

/// How a kubeconfig is used.
struct KubeconfigUse {
  std::string folder;     ///< base of its relative paths
  std::string context{};  ///< empty: its current-context
  bool insecure = false;  ///< insecure-skip-tls-verify is allowed
  bool user = true;       ///< false: the credential comes from elsewhere
};

/// Fills server, TLS and credential from the text of a kubeconfig. Throws INVALID for exec plugins and other
/// unsupported entries; the text says what to do instead.
void apply_kubeconfig(Settings& settings, const std::string& yaml, const KubeconfigUse& use);

}  // namespace driftd::k8s
