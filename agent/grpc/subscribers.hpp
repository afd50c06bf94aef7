// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "base/async_mutex.hpp"
#include "core/ports/control.hpp"
#include "core/ports/sink.hpp"
#include "core/ports/subscriptions.hpp"

namespace driftd::rpc {

/// Where the sinks of callbacks run: the relay, as the app composes it. Core thread.
class SinkHost {
 public:
  virtual ~SinkHost() = default;
  virtual void add(std::string name, std::unique_ptr<core::Sink> sink) = 0;  ///< before the relay starts
  /// Starts a sink; it gets events from the next one on, or continues where one of this name stopped.
  virtual Task<Status> start(std::string name, std::unique_ptr<core::Sink> sink) = 0;
  virtual Task<Status> stop(std::string name) = 0;    ///< it can be continued
  virtual Task<Status> remove(std::string name) = 0;  ///< what waits for it is given up, which a `gap` event reports
  virtual Task<Result<std::vector<std::string>>> stored() = 0;  ///< names of all sinks that have a cursor
  /// Replaces the routes to these sinks: of events from now on.
  virtual void route(std::vector<core::Route> routes) = 0;
  virtual std::vector<core::SinkView> views() const = 0;
};

/// What a subscriber looks like now.
struct SubscriberState {
  core::Subscription subscription;
  std::string status, detail, sink;  ///< status: Connected | Disconnected | Retrying
  unsigned streams = 0;
  std::int64_t delivered = 0, waiting = 0, dead = 0;
};

/// Returns the name of a subscription's sink: `grpc/<subscriber>`, which no sink of the configuration can have.
std::string sink_name(const std::string& subscriber);

/// Returns the route to it. With `event_types` it lets a little more through, which the sink leaves out.
core::Route route_of(const core::Subscription& one);

/// The stored subscriptions, their sinks and the open streams by subscriber. Changes are made one after the other, and
/// each is durable before it is answered: the row first, then the sink, then the route; the other way round on removal,
/// so that a kill in between leaves nothing that load() does not finish. `line` is written with the row, and not at all
/// if the row stays as it is. Core thread.
class Subscribers {
 public:
  using MakeSink = std::function<Result<std::unique_ptr<core::Sink>>(const core::Subscription&)>;
  /// The references must outlive it. `check_endpoint` says whether an endpoint is allowed.
  Subscribers(asio::any_io_executor core, core::Subscriptions& store, SinkHost& sinks, MakeSink make,
              std::function<Status(const std::string& endpoint)> check_endpoint);

  /// Reads the stored ones and adds their sinks; removes sinks whose subscription is gone. Before the relay starts.
  Task<Status> load();
  /// Returns `conflict` if another one is stored under this id, `budget` if there are too many.
  Task<Result<SubscriberState>> create(core::Subscription subscription, core::AuditEntry line);
  /// Returns `not_found` if there is none.
  Task<Result<SubscriberState>> update(core::Subscription subscription, core::AuditEntry line);
  Task<Result<bool>> remove(std::string subscriber, core::AuditEntry line);  ///< false: there was none
  Result<SubscriberState> get(const std::string& subscriber) const;
  std::vector<SubscriberState> list() const;  ///< by id; streams without a stored subscription, too

  void stream_opened(const std::string& subscriber) { ++streams_[subscriber]; }
  void stream_closed(const std::string& subscriber);

 private:
  Status check(const core::Subscription& one) const;
  Status check_room(const core::Subscription& one) const;
  bool runs(const core::Subscription& one) const;  ///< its sink is started
  Task<Result<SubscriberState>> store(core::Subscription next, core::AuditEntry line);
  void route() const;
  SubscriberState state_of(const core::Subscription& one, const std::vector<core::SinkView>& views) const;

  core::Subscriptions& store_;
  SinkHost& sinks_;
  const MakeSink make_;
  const std::function<Status(const std::string&)> check_endpoint_;
  AsyncMutex changing_;
  std::map<std::string, core::Subscription> stored_;  ///< by id
  std::map<std::string, std::string> blocked_;  ///< their endpoint is not allowed any more; by id, with the reason
  std::map<std::string, unsigned> streams_;     ///< open ones, by subscriber; never 0
};

}  // namespace driftd::rpc
