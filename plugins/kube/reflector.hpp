// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "kube/watches.hpp"

namespace driftd::kube {

/// A type to follow, and where. Selectors are those of the resource.
struct Followed {
  Resource resource;
  std::vector<std::string> namespaces{};  ///< empty: all, or a resource of the cluster
};

/// An object as the server has it, or had it before it was deleted.
struct Observed {
  const nlohmann::json& object;
  bool deleted = false;
  /// Why parts of the object are missing: it nests too deep or has too many values. Empty: it is whole.
  std::string cut{};
};

/// Takes what a Reflector sees. Every function runs on the thread of Reflector::run(); an exception ends run(), but for
/// a json::exception of on_object(), which becomes on_failure() with CORRUPT.
class ReflectorHandler {
 public:
  virtual ~ReflectorHandler() = default;
  /// An object exists or has changed, or is gone. An object may be handed out again although nothing changed, after
  /// each list. Of an object that went between a list and the next, `object` has apiVersion, kind, and the name,
  /// namespace and uid of its metadata. An object that was deleted and made again is gone first, under its former uid.
  virtual void on_object(const Resource& resource, const Observed& observed) = 0;
  /// Everything that exists of this type was handed out, and what was gone since the last list too. Called after each
  /// complete list of all its namespaces.
  virtual void on_synced(const Resource& resource) = 0;
  /// A list or watch of this type does not work, and is tried again with backoff; DENIED names the right, UNSUPPORTED
  /// is a type that the server does not serve (now). Called once for each namespace until on_recovered(), and again if
  /// the reason is another. The other types go on.
  virtual void on_failure(const Resource& resource, const sdk::Failure& failure) = 0;
  /// What on_failure() reported works again.
  virtual void on_recovered(const Resource& resource) = 0;
};

/// Lists and then watches several types at once on one thread. A watch whose place the server no longer knows (410), or
/// whose type was not served for a time, begins again with a list. Nothing that a failure hides counts as deleted.
///
/// A list runs on the same thread: while it is answered, the watches wait.
class Reflector final : WatchHandler {
 public:
  /// `api` and `handler` must outlive it.
  Reflector(Api& api, std::vector<Followed> followed, ReflectorHandler& handler);

  /// Runs until the call is cancelled, and then returns. Throws what the handler throws, and DEADLINE of the call. May
  /// be called again: it continues where it was. While another cluster answers, nothing of it is handed out: that is a
  /// failure of every type, until the first one answers again.
  void run(sdk::Call& call);
  /// Returns true if every type was handed out whole at least once. Any thread.
  bool has_synced() const { return unsynced_ == 0; }

 private:
  /// One list and watch of a type in a namespace; outlives its stream.
  struct Source {
    const Followed* followed = nullptr;
    std::string space;
    std::string version{};                 ///< where its watch goes on; empty: with a list
    std::map<Place, std::string> known{};  ///< uid of each object that was handed out
    std::string reported{};                ///< the failure that was reported last; empty: it works
    bool synced = false;                   ///< it was listed whole at least once
  };

  void start(sdk::Call& call, Stream& stream) override;  ///< with a list
  void on_object(sdk::Call& call, Stream& stream, const Lister::Listed& listed, Change change) override;
  void on_malformed(sdk::Call& call, Stream& stream) override;
  void on_expired(sdk::Call& call, Stream& stream) override;
  void on_failure(sdk::Call& call, Stream& stream, const sdk::Failure& failure) override;
  void on_recovered(sdk::Call& call, Stream& stream) override;

  void run_watches(sdk::Call& call);  ///< until the call or its client certificate ends
  /// Reports the failure for every type, and waits before the next try.
  void wait_for_cluster(sdk::Call& call, const sdk::Failure& failure);
  /// Hands out every object and returns the version of the list. Adds the places of the objects to `places`.
  std::string list(sdk::Call& call, Source& source, std::map<Place, std::string>& places);
  /// Hands out an object that exists.
  void observe(Source& source, const nlohmann::json& object, const std::string& cut);
  /// Reports a failure, unless it is the one that was reported last.
  void report(Source& source, const sdk::Failure& failure);
  void tell_gone(const Source& source, const Place& place, const std::string& uid);
  void keep_versions();  ///< for the next Watches

  Api& api_;
  const std::vector<Followed> followed_;
  ReflectorHandler& handler_;
  std::vector<Source> sources_;
  std::map<const Stream*, Source*> source_of_;  ///< of the streams of the present Watches
  std::atomic<int> streams_lists_{-1};          ///< as Lister needs it
  http::Client* client_ = nullptr;              ///< while run() is on its way
  std::chrono::milliseconds patience_{0};       ///< wait before the last try, while another cluster answers
  std::atomic<std::size_t> unsynced_;           ///< sources that were never listed whole
};

}  // namespace driftd::kube
