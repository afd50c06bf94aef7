// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "driftd/sdk/scope.hpp"
#include "kube/connection.hpp"

namespace driftd::k8s {

/// A configured custom type. `fields` maps attribute names to paths in the object (`spec.replicas`,
/// `spec.ports[0].name`); if empty, the whole spec is read.
struct Custom {
  std::string group, version, kind;  ///< as in the object's apiVersion and kind
  std::map<std::string, std::string> fields;
};

/// Settings of one instance, as in schema.json, with its kubeconfig or service account read. Immutable.
struct Settings : kube::Connection {
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
  sdk::Scope scope;
};

/// Parses the JSON that open() gets and reads the kubeconfig that it names. Throws INVALID with the name of the
/// setting.
Settings parse_settings(std::string_view json);

}  // namespace driftd::k8s
