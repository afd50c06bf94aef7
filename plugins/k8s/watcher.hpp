// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "k8s/list_splitter.hpp"
#include "k8s/resource_versions.hpp"
#include "k8s/watched_backends.hpp"

namespace driftd::k8s {

/// One watch of a resource in a namespace.
struct Stream {
  using Clock = std::chrono::steady_clock;

  const Resource* resource = nullptr;                     ///< borrowed from the watcher
  std::string space, key;                                 ///< `key` is that of version_key()
  std::string version;                                    ///< last resource version; empty: must be requested
  std::uint64_t request = 0;                              ///< in flight; 0: none
  bool open = false;                                      ///< the server has accepted the request
  bool emits = true;                                      ///< false: only watched for the definitions of backends
  bool expired = false;                                   ///< the server no longer knows `version`
  bool reported = false;                                  ///< its failure was already reported
  bool fresh = false;                                     ///< the server has just given `version`
  Clock::time_point since = Clock::time_point::min();     ///< every change since then was seen
  Clock::time_point received_at{}, opened{}, retry_at{};  ///< last data; last request; next request
  std::chrono::milliseconds backoff{0};                   ///< of the last failure; 0: none
  std::unique_ptr<LineSplitter> lines;                    ///< of the request in flight
};

/// What to watch; `scope` differs whenever the types or filters do.
struct WatchTarget {
  std::vector<Resource> resources;
  std::string scope;
};

/// The reflector: watches all resources at once on the thread of the call, over as few connections as the server
/// allows. Emits changed objects and tombstones, each group followed by a BOOKMARK with the versions of all streams. A
/// broken stream is resumed at its version, with backoff; one whose version the server no longer knows ends the watch
/// with CURSOR_EXPIRED.
class Watcher {
 public:
  using Clock = Stream::Clock;

  Watcher(sdk::Call& call, Api& api, const Settings& settings, WatchTarget watched, ListCache& list_cache,
          std::atomic<int>& streams);
  ~Watcher();

  /// Runs until the call is cancelled, the host asks to stop, or the set of served types changes. If `cursor` is empty
  /// or of another scope, it starts from the last complete list, else from now. Throws UNAVAILABLE if another cluster
  /// answers.
  void run(sdk::Call& call, const std::string& cursor);

 private:
  /// Starts each stream at its version in the cursor, or in the last list if that is later.
  void restore_versions(const std::string& cursor);
  void run_once(sdk::Call& call);  ///< waits for data, handles it, emits what follows from it
  void open_due(sdk::Call& call);  ///< streams without a request whose time has come
  void open(sdk::Call& call, Stream& stream);
  void ask_position(sdk::Call& call, Stream& stream);  ///< the stream starts from now
  /// Returns true if the server is not at the stream's version yet: it was restored from a backup. From there it would
  /// push nothing until it gets to that version, and not say so.
  bool is_ahead(sdk::Call& call, Stream& stream);
  void on_line(sdk::Call& call, Stream& stream, std::string_view line);  ///< one event of a stream
  /// An ERROR may mark the stream as expired.
  void on_event(sdk::Call& call, Stream& stream, const nlohmann::json& event, const std::string& cut);
  /// Emits it, and notes it for the backends.
  void on_object(sdk::Call& call, Stream& stream, const Lister::Listed& listed, bool gone);
  /// Resumes the stream, at once or after a wait.
  void on_request_end(sdk::Call& call, const http::MultiClient::Completion& ended);
  void drop_silent();  ///< closes all connections if one stream is silent for too long
  /// Makes the wait of a stream longer, with jitter, and at least `at_least`.
  void schedule_retry(Stream& stream, std::chrono::milliseconds at_least = {});
  /// Reports the failure once, until the stream works again.
  void report_failure(sdk::Call& call, Stream& stream, const sdk::Failure& failure);
  void check_expired();  ///< throws CURSOR_EXPIRED
  void emit_dependents(sdk::Call& call);
  void emit_releases(sdk::Call& call);
  void emit_jobs(sdk::Call& call);  ///< those of `jobs_` that no CronJob made
  /// Returns true if something is still to be emitted.
  bool has_pending() const { return !releases_.empty() || !jobs_.empty() || backends_.has_changes(); }
  void emit(sdk::Call& call, const sdk::Record& record);
  void bookmark(sdk::Call& call);     ///< the cursor stays where it is while something is pending
  void update_list_cache();           ///< since when all streams have seen every change
  Clock::time_point wake_at() const;  ///< when something is due

  Api& api_;
  const Settings& settings_;
  const std::vector<Resource> resources_;
  const std::string scope_, uid_;  ///< uid_: uid of the watched cluster
  const http::Tls tls_;
  ListCache& list_cache_;
  http::MultiClient multi_client_;
  http::Client client_;
  Lister lister_;
  WatchedBackends backends_;
  std::vector<Stream> streams_;  ///< addresses stay: the constructor makes all of them
  std::mt19937 random_{std::random_device{}()};
  std::optional<sdk::Failure> host_failure_;  ///< failure of the host's emit

  std::set<std::pair<std::string, std::string>> releases_;  ///< namespace and name of releases to read again
  std::set<std::pair<std::string, std::string>> jobs_;      ///< the same of Jobs that name a CronJob that is not known
  Clock::time_point dependents_after_{};
  bool emitted_ = false, finish_ = false;  ///< since the last bookmark; the host asks to stop
  std::string cursor_;                     ///< cursor at which nothing was outstanding
  Clock::time_point marked_{};             ///< time of the last bookmark
};

}  // namespace driftd::k8s
