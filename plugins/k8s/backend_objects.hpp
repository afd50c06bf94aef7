// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "k8s/catalog.hpp"
#include "k8s/lister.hpp"
#include "k8s/references.hpp"
#include "k8s/shares.hpp"

namespace driftd::k8s {

/// The objects that define backends, read from the API server.
class BackendObjects {
 public:
  BackendObjects(Api& api, const Settings& settings, http::Client& client, Lister& lister)
      : api_(api),
        settings_(settings),
        client_(client),
        lister_(lister) {}

  /// Every labelled Service, Secret and ConfigMap, every PrismBackend, and what those point to, without namespaces that
  /// have more than their share. Throws where one of the lists could not be read: half of them would look like a
  /// change.
  Objects collect(sdk::Call& call, const std::vector<Resource>& resources, std::vector<sdk::Diagnostic>& diagnostics);
  /// Adds what the definitions point to and `objects` do not hold. What does not exist stays missing, and so does what
  /// the API server does not give for a reason of its own, which is a fault of that definition alone. Throws where
  /// nobody is answered: no credential, too many requests, a server that is ill, a connection that is none.
  void complete(sdk::Call& call, Objects& objects, std::vector<sdk::Diagnostic>& diagnostics);
  /// Of the objects that this collected: what a watch says is added or taken away.
  Shares& shares() { return shares_; }

 private:
  std::optional<Absence> read_reference(sdk::Call& call, const Ref& ref, const std::string& space, Objects& objects);

  Shares shares_;
  References references_;
  Api& api_;
  const Settings& settings_;
  http::Client& client_;
  Lister& lister_;
};

/// The namespaces to ask, one empty name for all.
std::vector<std::string> spaces_of(const Resource& resource, const Settings& settings);

Ref ref_of(const Resource& resource, const nlohmann::json& object);

}  // namespace driftd::k8s
