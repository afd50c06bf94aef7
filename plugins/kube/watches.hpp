// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <exception>
#include <list>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <random>
#include <string>
#include <utility>

#include "kube/list_splitter.hpp"
#include "kube/lister.hpp"

namespace driftd::kube {

/// One watch of a resource in a namespace.
struct Stream {
  using Clock = std::chrono::steady_clock;

  const Resource* resource = nullptr;                  ///< borrowed
  std::string space;                                   ///< empty: all namespaces, or a resource of the cluster
  std::string version;                                 ///< last resource version; empty: where it starts is not known
  std::uint64_t request = 0;                           ///< in flight; 0: none
  bool open = false;                                   ///< the server has accepted the request
  bool expired = false;                                ///< the server no longer knows `version`
  bool failed = false;                                 ///< on_failure() was called, and on_recovered() not yet
  bool fresh = false;                                  ///< the server has just given `version`
  Clock::time_point since = Clock::time_point::min();  ///< every change since then was seen
  Clock::time_point received_at{}, opened{}, retry_at{};  ///< last data; last request; next request
  std::chrono::milliseconds backoff{0};                   ///< of the last failure; 0: none
  std::unique_ptr<LineSplitter> lines{};                  ///< of the request in flight

  /// The stream continues from here: the server has just given this version, and every change since `at` will be seen.
  void start_at(std::string at_version, Clock::time_point at) {
    version = std::move(at_version);
    since = at;
    fresh = true;
  }
};

/// What became of an object.
enum class Change { kAdded, kModified, kDeleted };

/// Takes what watches bring. Every function runs on the thread of Watches::run_once(); an exception ends it.
class WatchHandler {
 public:
  virtual ~WatchHandler() = default;
  /// The stream has no version: start_at() one. A failure is reported and tried again with backoff.
  virtual void start(sdk::Call& call, Stream& stream) = 0;
  /// An object changed. A json::exception is a form that the handler does not understand: on_malformed() is called.
  virtual void on_object(sdk::Call& call, Stream& stream, const Lister::Listed& listed, Change change) = 0;
  virtual void on_malformed(sdk::Call& call, Stream& stream) = 0;
  /// The server no longer knows the version of the stream, or was restored to before it. Unless this throws, the stream
  /// has no version any more and start() is called.
  virtual void on_expired(sdk::Call& call, Stream& stream) = 0;
  /// The stream does not work; it is tried again with backoff. Called for each try; `stream.failed` is true if the one
  /// before failed too.
  virtual void on_failure(sdk::Call& call, Stream& stream, const sdk::Failure& failure) = 0;
  /// A stream that had failed works again.
  virtual void on_recovered(sdk::Call& call, Stream& stream);
};

/// Watches several resources at once on one thread, over as few connections as the server allows. A broken stream is
/// resumed at its version, with backoff and jitter, and not before the server's Retry-After has passed. [one thread]
class Watches {
 public:
  using Clock = Stream::Clock;

  /// All must outlive it; `lister` asks for the current version of a resource.
  Watches(sdk::Call& call, Api& api, Lister& lister, WatchHandler& handler);

  /// Adds a watch, which is opened by run_once(). The address of the stream stays.
  Stream& add(const Resource& resource, const std::string& space);
  const std::list<Stream>& streams() const { return streams_; }
  std::list<Stream>& streams() { return streams_; }
  /// Opens what is due, waits for data at most until `until`, and hands it to the handler. Throws CANCELLED or DEADLINE
  /// of the call, what the handler throws, and UNAVAILABLE if another cluster answers.
  void run_once(sdk::Call& call, Clock::time_point until);
  /// Returns true if the client certificate of the connections is no longer that of the credential: new Watches must
  /// be made.
  bool has_old_certificate() const { return old_certificate_; }

 private:
  void open_due(sdk::Call& call);  ///< streams without a request whose time has come
  void open(sdk::Call& call, Stream& stream);
  /// Returns true if the server is not at the stream's version yet: it was restored from a backup. From there it would
  /// push nothing until it gets to that version, and not say so.
  bool is_ahead(sdk::Call& call, Stream& stream);
  void on_line(sdk::Call& call, Stream& stream, std::string_view line);  ///< one event of a stream
  /// An ERROR may mark the stream as expired.
  void on_event(sdk::Call& call, Stream& stream, const nlohmann::json& event, const std::string& cut);
  /// Resumes the stream, at once or after a wait.
  void on_request_end(sdk::Call& call, const http::MultiClient::Completion& ended);
  void check_expired(sdk::Call& call);
  void drop_silent();  ///< closes all connections if one stream is silent for too long
  /// Makes the wait of a stream longer, with jitter, and at least `at_least`.
  void schedule_retry(Stream& stream, std::chrono::milliseconds at_least = {});
  void report_failure(sdk::Call& call, Stream& stream, const sdk::Failure& failure);
  Clock::time_point wake_at() const;  ///< when something is due

  Api& api_;
  Lister& lister_;
  WatchHandler& handler_;
  const std::string uid_;  ///< uid of the watched cluster
  const http::Tls tls_;
  http::MultiClient multi_client_;
  std::list<Stream> streams_;
  std::mt19937 random_{std::random_device{}()};
  std::exception_ptr thrown_;  ///< by the handler while it took an object
  bool old_certificate_ = false;
};

}  // namespace driftd::kube
