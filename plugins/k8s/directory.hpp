// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "k8s/catalog.hpp"
#include "k8s/lister.hpp"
#include "k8s/prism.hpp"

namespace driftd::k8s {

/// The objects that define backends, read from the API server.
class Directory {
 public:
  Directory(Api& api, const Settings& settings, http::Client& client, Lister& lister)
      : api_(api), settings_(settings), client_(client), lister_(lister) {}

  /// Every labelled Service, Secret and ConfigMap, every PrismBackend, and what those point to. Throws where one of these
  /// could not be looked at: half of them would look like a change.
  Objects collect(sdk::Call& call, const std::vector<Resource>& resources);
  /// Adds what the definitions point to and `objects` do not hold; what does not exist stays missing.
  void complete(sdk::Call& call, Objects& objects);

 private:
  Api& api_;
  const Settings& settings_;
  http::Client& client_;
  Lister& lister_;
};

/// The namespaces to ask, one empty name for all.
std::vector<std::string> spaces_of(const Resource& resource, const Settings& settings);

Ref ref_of(const Resource& resource, const nlohmann::json& object);

/// The object carries the label that makes it part of a backend.
bool is_labelled(const nlohmann::json& object, const Settings& settings);

}  // namespace driftd::k8s
