// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "k8s/backend_objects.hpp"
#include "k8s/catalog.hpp"
#include "k8s/resource_versions.hpp"

namespace driftd::k8s {

/// One refresh or read. Not thread-safe.
class Reader {
 public:
  Reader(Api& api, const Settings& settings, http::Client& client, std::atomic<int>& streams)
      : api_(api),
        settings_(settings),
        cluster_(api.cluster_guard().uid()),
        client_(client),
        lister_(api, settings, client, streams),
        backend_objects_(api, settings, client, lister_) {}

  /// Emits every kind that is wanted, with COMPLETE for each that was listed whole and a diagnostic for each that was
  /// not. True: all were, and a watch from versions() tells of whatever changes after it. Stops where the host wants
  /// that. A connection that is down, a credential that is refused and the end of the call are thrown.
  bool refresh(sdk::Call& call, const sdk::Refresh& request, const Catalog::Answer& types);
  /// Where each list of it stands.
  const ResourceVersions& versions() const { return versions_; }

  /// Emits one resource. True: the server said that it does not exist. What cannot be told gets a diagnostic.
  bool read(sdk::Call& call, const sdk::Identity& id, const std::vector<Resource>& resources);

 private:
  struct FinishSoon {};

  void refresh_all(sdk::Call& call, const sdk::Refresh& request, const Catalog::Answer& types, bool& whole);
  std::uint64_t emit(sdk::Call& call, sdk::Record record, std::int64_t sent);
  std::uint64_t list(sdk::Call& call, const Resource& resource);
  std::uint64_t list_releases(sdk::Call& call, const Resource& resource, const std::string& space);
  bool refresh_kind(sdk::Call& call, const std::string& kind, const Catalog::Answer& types);
  bool refresh_backends(sdk::Call& call, const Catalog::Answer& types);
  bool read_object(sdk::Call& call, const sdk::Identity& id, const Resource& resource, const Place& place);
  bool read_release(sdk::Call& call, const Resource& resource, const Place& place);
  bool read_backend(sdk::Call& call, const sdk::Identity& id, const std::vector<Resource>& resources);

  Api& api_;
  const Settings& settings_;
  const std::string cluster_;  ///< the one that is read; empty: not known
  http::Client& client_;
  Lister lister_;
  BackendObjects backend_objects_;
  ResourceVersions versions_;
  bool lists_ = false;  ///< the host may end it early: a read is always whole
};

}  // namespace driftd::k8s
