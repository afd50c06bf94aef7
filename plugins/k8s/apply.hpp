// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "common/apply_steps.hpp"
#include "k8s/api.hpp"
#include "k8s/kinds.hpp"
#include "k8s/settings.hpp"

namespace driftd::k8s {

inline constexpr const char* kFieldManager = "driftd";

/// Puts attributes of one object back by one JSON Patch, which begins with tests of the object's uid and
/// resourceVersion: it is made whole or not at all, only to the object that was read, and it never creates one. Lives
/// for one call.
///
/// Server-side apply is not used, although it knows about conflicts: it creates an object that is not there, it cannot
/// take away a field that another manager set, and it takes away what an earlier apply of driftd set and a later one
/// does not name. Whose fields a patch would change is checked against the object's managedFields instead, of the very
/// resourceVersion that the patch tests.
class ObjectApplier {
 public:
  /// All must outlive it. `keys` are of the instance.
  ObjectApplier(Api& api, const Settings& settings, http::Client& client, common::AppliedRequests& keys)
      : api_(api),
        settings_(settings),
        client_(client),
        keys_(keys) {}
  /// `resources` are the types that are served. Throws NOT_FOUND, CONFLICT, INVALID for an identity that no object has,
  /// UNSUPPORTED if its type is not served, or what the requests throw.
  sdk::Applied apply(sdk::Call& call, const sdk::Apply& request, const std::vector<Resource>& resources);

 private:
  /// The object that is asked for: where it is, and its present state.
  struct Target {
    const Resource& resource;
    Place place;
    std::string path;       ///< in the API
    nlohmann::json object;  ///< as the server sent it
    sdk::Record record;     ///< as a refresh would emit it
  };
  Target read(sdk::Call& call, const sdk::Identity& id, const Resource& resource) const;
  /// Returns the outcome if it is decided before anything is sent.
  std::optional<sdk::Applied> decided(const Target& target, const sdk::Apply& request) const;
  /// Sends the patch and returns the outcome.
  sdk::Applied patch(sdk::Call& call, const Target& target, const sdk::Apply& request, const nlohmann::json& wanted);
  sdk::Applied refusal_outcome(sdk::Call& call, const Target& target, const http::Response& response) const;

  Api& api_;
  const Settings& settings_;
  http::Client& client_;
  common::AppliedRequests& keys_;
};

}  // namespace driftd::k8s
