// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "k8s/catalog.hpp"
#include "k8s/references.hpp"
#include "k8s/shares.hpp"
#include "kube/lister.hpp"

namespace driftd::k8s {

/// Reads the objects that define backends from the API server.
class BackendObjects {
 public:
  BackendObjects(Api& api, const Settings& settings, http::Client& client, kube::Lister& lister)
      : api_(api),
        settings_(settings),
        client_(client),
        lister_(lister) {}

  /// Returns every labelled Service, Secret and ConfigMap, every PrismBackend, and what they refer to, except for
  /// namespaces above their quota (Shares). Throws if one of the lists cannot be read, because a partial result would
  /// look like a change.
  Objects collect(sdk::Call& call, const std::vector<Resource>& resources, std::vector<sdk::Diagnostic>& diagnostics);
  /// Adds the objects that definitions refer to and `objects` lacks. An object that does not exist stays missing, and
  /// so does one that the API server denies, which affects that definition alone. Throws if the failure concerns every
  /// request: no credential, too many requests, a failing server or connection.
  void complete(sdk::Call& call, Objects& objects, std::vector<sdk::Diagnostic>& diagnostics);
  /// Quota of the collected objects; the watch adds to and removes from it.
  Shares& shares() { return shares_; }

 private:
  std::optional<Absence> read_reference(sdk::Call& call, const Ref& ref, const std::string& space, Objects& objects);

  Shares shares_;
  References references_;
  Api& api_;
  const Settings& settings_;
  http::Client& client_;
  kube::Lister& lister_;
};

/// Returns the namespaces to list; one empty name stands for all.
std::vector<std::string> spaces_of(const Resource& resource, const Settings& settings);

Ref ref_of(const Resource& resource, const nlohmann::json& object);

}  // namespace driftd::k8s
