// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "k8s/resource_versions.hpp"
#include "k8s/watched_backends.hpp"
#include "kube/watches.hpp"

namespace driftd::k8s {

/// What to watch; `scope` differs whenever the types or filters do.
struct WatchTarget {
  std::vector<Resource> resources;
  std::string scope;
};

/// Watches all resources at once on the thread of the call. Emits changed objects and tombstones, each group followed
/// by a BOOKMARK with the versions of all streams. A stream whose version the server no longer knows ends the watch
/// with CURSOR_EXPIRED.
class Watcher final : kube::WatchHandler {
 public:
  using Clock = kube::Stream::Clock;

  Watcher(sdk::Call& call, Api& api, const Settings& settings, WatchTarget watched, ListCache& list_cache,
          std::atomic<int>& streams);
  ~Watcher() override;

  /// Runs until the call is cancelled, the host asks to stop, or the set of served types changes. If `cursor` is empty
  /// or of another scope, it starts from the last complete list, else from now. Throws UNAVAILABLE if another cluster
  /// answers.
  void run(sdk::Call& call, const std::string& cursor);

 private:
  /// What a stream means to this watcher.
  struct Watched {
    const Resource* resource = nullptr;  ///< of `resources_`
    std::string key;                     ///< that of version_key()
    bool emits = true;                   ///< false: only watched for the definitions of backends
  };

  void start(sdk::Call& call, kube::Stream& stream) override;  ///< from now
  /// Emits it, and notes it for the backends.
  void on_object(sdk::Call& call, kube::Stream& stream, const kube::Lister::Listed& listed,
                 kube::Change change) override;
  void on_malformed(sdk::Call& call, kube::Stream& stream) override;
  void on_expired(sdk::Call& call, kube::Stream& stream) override;  ///< throws CURSOR_EXPIRED
  void on_failure(sdk::Call& call, kube::Stream& stream, const sdk::Failure& failure) override;

  void add_streams();
  /// Starts each stream at its version in the cursor, or in the last list if that is later.
  void restore_versions(const std::string& cursor);
  void run_once(sdk::Call& call);  ///< waits for data, handles it, emits what follows from it
  void emit_dependents(sdk::Call& call);
  void emit_releases(sdk::Call& call);
  void emit_jobs(sdk::Call& call);  ///< those of `jobs_` that no CronJob made
  /// Returns true if something is still to be emitted.
  bool has_pending() const { return !releases_.empty() || !jobs_.empty() || backends_.has_changes(); }
  void emit(sdk::Call& call, const sdk::Record& record);
  void bookmark(sdk::Call& call);  ///< the cursor stays where it is while something is pending
  void update_list_cache();        ///< since when all streams have seen every change

  Api& api_;
  const Settings& settings_;
  const std::vector<Resource> resources_;
  const std::string scope_, uid_;  ///< uid_: uid of the watched cluster
  ListCache& list_cache_;
  http::Client client_;
  kube::Lister lister_;
  WatchedBackends backends_;
  kube::Watches watches_;
  std::map<const kube::Stream*, Watched> watched_;  ///< one for each stream of `watches_`
  bool host_failed_ = false;                        ///< the host refused a record

  std::set<std::pair<std::string, std::string>> releases_;  ///< namespace and name of releases to read again
  std::set<std::pair<std::string, std::string>> jobs_;      ///< the same of Jobs that name a CronJob that is not known
  Clock::time_point dependents_after_{};
  bool emitted_ = false, finish_ = false;  ///< since the last bookmark; the host asks to stop
  std::string cursor_;                     ///< cursor at which nothing was outstanding
  Clock::time_point marked_{};             ///< time of the last bookmark
};

}  // namespace driftd::k8s
