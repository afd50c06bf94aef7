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

#include "k8s/backend_objects.hpp"
#include "k8s/list_splitter.hpp"
#include "k8s/resource_versions.hpp"

namespace driftd::k8s {

/// One watch of a resource in a namespace.
struct Stream {
  using Clock = std::chrono::steady_clock;

  const Resource* resource = nullptr;
  std::string space, key;
  std::string version;                                 ///< resource version reached; empty: to be asked for
  std::uint64_t request = 0;                           ///< in flight; 0: none
  bool open = false;                                   ///< the server accepted it
  bool emits = true;                                   ///< false: only looked at for what defines backends
  bool expired = false;                                ///< the server forgot `version`
  bool reported = false;                               ///< that it is refused
  Clock::time_point since = Clock::time_point::min();  ///< it sees every change since then
  Clock::time_point received_at{}, opened{}, retry_at{};
  std::chrono::milliseconds backoff{0};
  std::unique_ptr<LineSplitter> lines;
};

/// What is watched; `scope` differs whenever that does.
struct WatchTarget {
  std::vector<Resource> resources;
  std::string scope;
};

/// The reflector: watches all resources at once on the thread of the call, over as few connections as the server
/// allows. Emits changed objects and tombstones, each group ended by a BOOKMARK with the versions of all streams. A
/// stream that breaks is taken up where it was, with backoff; one whose position is forgotten ends the watch with
/// CURSOR_EXPIRED.
class Watcher {
 public:
  using Clock = Stream::Clock;

  Watcher(sdk::Call& call, Api& api, const Settings& settings, WatchTarget watched, ListCache& list_cache,
          std::atomic<int>& streams);
  ~Watcher();

  /// Until the call is cancelled, the host wants it to end, or another type is served. `cursor` empty or of another
  /// scope: from the last whole list, else from now. UNAVAILABLE: another cluster answers.
  void run(sdk::Call& call, const std::string& cursor);

 private:
  void restore_versions(const std::string& cursor);
  void run_once(sdk::Call& call);
  void open_due(sdk::Call& call);
  void open(sdk::Call& call, Stream& stream);
  void ask_position(sdk::Call& call, Stream& stream);
  void on_line(sdk::Call& call, Stream& stream, std::string_view line);
  void on_event(sdk::Call& call, Stream& stream, const nlohmann::json& event, const std::string& cut);
  void on_object(sdk::Call& call, Stream& stream, const Lister::Listed& listed, bool gone);
  void note_definition(const Ref& ref, const nlohmann::json& object, bool gone);
  void on_request_end(sdk::Call& call, const http::MultiClient::Completion& ended);
  void drop_silent();
  void schedule_retry(Stream& stream, std::chrono::milliseconds at_least = {});
  void report_failure(sdk::Call& call, Stream& stream, const sdk::Failure& failure);
  void check_expired();
  void emit_dependents(sdk::Call& call);
  void emit_releases(sdk::Call& call);
  void emit_registrations(sdk::Call& call);
  void recheck_skipped(sdk::Call& call);
  bool tracks_backends() const { return registers_ && Clock::now() >= refused_until_; }
  bool has_pending() const { return !releases_.empty() || !causes_.empty(); }
  void emit(sdk::Call& call, const sdk::Record& record);
  void bookmark(sdk::Call& call);
  void update_list_cache();
  Clock::time_point wake_at() const;

  Api& api_;
  const Settings& settings_;
  const std::vector<Resource> resources_;
  const std::string scope_, uid_;  ///< uid_: the cluster that is watched
  const http::Tls tls_;
  ListCache& list_cache_;
  http::MultiClient multi_client_;
  http::Client client_;
  Lister lister_;
  BackendObjects backend_objects_;
  std::vector<Stream> streams_;
  std::mt19937 random_{std::random_device{}()};
  std::optional<sdk::Failure> host_failure_;  ///< what the host answered to emit

  std::set<std::pair<std::string, std::string>> releases_;  ///< namespace, name: to be put together anew
  std::optional<Objects> defining_;                         ///< nothing: to be read first
  Definitions known_;
  std::set<Ref> causes_;
  bool space_freed_ = false;           ///< a namespace that is passed over lost some of what was too much
  Clock::time_point recheck_after_{};  ///< and is not looked at before
  bool registers_;                     ///< what defines backends is wanted
  Clock::time_point refused_until_{};  ///< a right for it is missing: not asked again before
  Clock::time_point dependents_after_{};
  bool emitted_ = false, finish_ = false;
  std::string cursor_;  ///< where nothing is outstanding
  Clock::time_point marked_{};
};

}  // namespace driftd::k8s
