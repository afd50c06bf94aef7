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

/// A kind beyond those that the provider knows: `fields` are attribute name → path in the object (`spec.replicas`,
/// `spec.ports[0].name`); none: the whole spec.
struct Custom {
  std::string group, version, kind;
  std::map<std::string, std::string> fields;
};

/// How the API server is told who asks. At most one is set; none: anonymous, or by the client's certificate.
struct Identification {
  std::string token_reference;  ///< of the host's secret()
  std::string token_file;       ///< read anew each minute and when it is refused
  std::string token;            ///< as a kubeconfig holds it
};

/// Settings of one instance, as in schema.json, with its kubeconfig or service account read. Immutable.
struct Settings {
  std::string server;  ///< `https://host:port`, perhaps a path; no slash at its end
  http::Tls tls;
  Identification identification;
  std::vector<std::string> namespaces;           ///< empty: all
  std::map<std::string, std::string> selectors;  ///< kind → label selector
  std::vector<std::string> labels, annotations;  ///< globs: those that are part of a body
  std::string group = "prism.io";                ///< of PrismBackend and of the labels
  std::string discover = "prism.io/backend=true";
  std::vector<Custom> objects;
  std::vector<std::string> replica_owners;  ///< globs of field managers whose `replicas` are not judged
  std::string cluster_domain = "cluster.local";
  std::size_t page = 500;
  bool streaming_lists = true;
  std::chrono::milliseconds connect{5000}, call{20'000};
  /// a watch that says nothing for so long is broken; bookmarks come each minute
  std::chrono::milliseconds silence{90'000};
  sdk::Scope scope;
};

/// From the JSON that open() gets; reads the kubeconfig that it names. Throws sdk::Failure INVALID with the setting's
/// name.
Settings parse_settings(std::string_view json);

/// What of a kubeconfig is used, and how.
struct KubeconfigUse {
  std::string folder;     ///< what its relative paths start from
  std::string context{};  ///< empty: its current one
  bool insecure = false;  ///< insecure-skip-tls-verify is allowed
  bool user = true;       ///< false: who asks is said elsewhere
};

/// Fills server, TLS and identification from a kubeconfig's text. INVALID: exec plugins and what else cannot be done,
/// and what to do.
void apply_kubeconfig(Settings& settings, const std::string& yaml, const KubeconfigUse& use);

}  // namespace driftd::k8s
