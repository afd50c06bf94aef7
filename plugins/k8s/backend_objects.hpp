// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <utility>
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
  /// namespaces above their quota (Shares). A list that is denied is reported with its right and left out: hides() and
  /// definitions_of() know what that makes unknown. Throws for any other failure, because a partial result would look
  /// like a change.
  Objects collect(sdk::Call& call, const std::vector<Resource>& resources, std::vector<sdk::Diagnostic>& diagnostics);
  /// Adds the objects that definitions refer to and `objects` lacks. An object that does not exist stays missing, and
  /// so does one that the API server denies, which affects that definition alone. Throws if the failure concerns every
  /// request: no credential, too many requests, a failing server or connection.
  void complete(sdk::Call& call, Objects& objects, std::vector<sdk::Diagnostic>& diagnostics);
  /// Returns definitions() of collected objects, without the labelled ones of which a part was denied: half of one
  /// would look like a change.
  Definitions definitions_of(const Objects& objects, std::vector<sdk::Diagnostic>& diagnostics) const;
  /// Returns true if a list was denied by the last collect(), so that what it returned is not everything.
  bool is_partial() const { return !denied_.empty(); }
  /// Returns true if a part of this definition is in a list that was denied: that it is missing proves nothing.
  bool hides(const Definition& definition) const;
  /// Quota of the collected objects; the watch adds to and removes from it.
  Shares& shares() { return shares_; }

 private:
  /// Lists one type in one namespace, or notes that this is denied.
  void list(sdk::Call& call, const Resource& resource, const std::string& space, Objects& out,
            std::vector<sdk::Diagnostic>& diagnostics);
  /// Lists the namespaces in which PrismBackends of the cluster name many objects of one type: a thousand of them would
  /// otherwise be two thousand requests. One that denies the list is left to single requests.
  void list_references(sdk::Call& call, const Definitions& all, Objects& objects);
  void list_references(sdk::Call& call, const std::set<Ref>& wanted, Objects& objects);
  bool is_allowed(const std::string& space) const;  ///< the settings do not leave this namespace out
  bool is_denied(const std::string& type, const std::string& space) const {
    return denied_.contains({type, space}) || denied_.contains({type, {}});
  }
  std::optional<Absence> read_reference(sdk::Call& call, const Ref& ref, const std::string& space, Objects& objects);

  Shares shares_;
  std::set<std::pair<std::string, std::string>> denied_;  ///< types and namespaces that could not be listed
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
