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
        lister_(api, client, streams),
        backend_objects_(api, settings, client, lister_) {}

  /// Emits every wanted kind, with COMPLETE for each that was listed completely and a diagnostic for each that was not.
  /// Returns true if all were and a watch from versions() reports every later change. Stops when the host asks for it.
  /// Throws if the connection is down, the credential is rejected or the call ends.
  bool refresh(sdk::Call& call, const sdk::Refresh& request, const Catalog::Answer& types);
  /// Returns the resource version of each list.
  const ResourceVersions& versions() const { return versions_; }

  /// Emits one resource. Returns true if the server reported that it does not exist. If that cannot be determined, a
  /// diagnostic says why.
  bool read(sdk::Call& call, const sdk::Identity& id, const Catalog::Answer& types);

 private:
  struct FinishSoon {};  ///< thrown by emit() when the host asks to stop a refresh

  void refresh_all(sdk::Call& call, const sdk::Refresh& request, const Catalog::Answer& types, bool& whole);
  /// Emits a record that was requested at `sent`, if its cluster is still the accepted one. Returns 1.
  std::uint64_t emit(sdk::Call& call, sdk::Record record, std::int64_t sent);
  /// Returns the number of records of all namespaces. Empty if one of them could not be listed, which a diagnostic
  /// says; the others were.
  std::optional<std::uint64_t> list(sdk::Call& call, const Resource& resource);
  /// Returns the number of records of one namespace. Throws if it cannot be listed.
  std::uint64_t list(sdk::Call& call, const Resource& resource, const std::string& space);
  /// Does the same for Helm releases.
  std::uint64_t list_releases(sdk::Call& call, const Resource& resource, const std::string& space);
  /// Does the same for Jobs, without those of CronJobs.
  std::uint64_t list_jobs(sdk::Call& call, const Resource& resource, const std::string& space);
  /// Notes the CronJobs that the API server has there now. Returns false, with a diagnostic, if the right is missing.
  bool note_cron_jobs(sdk::Call& call, const std::string& space);
  /// Returns true if all of the kind was listed and COMPLETE was sent.
  bool refresh_kind(sdk::Call& call, const std::string& kind, const Catalog::Answer& types);
  /// Emits the registrations, with a COMPLETE for each backend. Returns true if these were all.
  bool refresh_backends(sdk::Call& call, const Catalog::Answer& types);
  /// Returns true if the server says that the object does not exist.
  bool read_object(sdk::Call& call, const sdk::Identity& id, const Resource& resource, const Place& place);
  bool read_release(sdk::Call& call, const Resource& resource, const Place& place);  ///< true: it has no revision
  /// Returns true if nothing defines the backend.
  bool read_backend(sdk::Call& call, const sdk::Identity& id, const Catalog::Answer& types);

  Api& api_;
  const Settings& settings_;
  const std::string cluster_;  ///< uid of the cluster that is read; empty: not known
  http::Client& client_;
  kube::Lister lister_;
  BackendObjects backend_objects_;
  ResourceVersions versions_;
  bool noted_cron_jobs_ = false;  ///< the list of the kind `cron_job` in this refresh had all of them
  bool lists_ = false;            ///< the host may stop a refresh early, but not a read
};

}  // namespace driftd::k8s
