// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "core/ports/credentials.hpp"
#include "core/ports/reader.hpp"
#include "core/ports/registry.hpp"
#include "grpc/peers.hpp"
#include "grpc/subscribers.hpp"

namespace driftd::rpc {

/// What the services need of the agent. All of it must outlive the server.
struct Dependencies {
  asio::any_io_executor core, io;
  core::Reader& reader;
  core::Subscriptions& subscriptions;
  SinkHost& sinks;
  core::ManualBackends& manual;
  std::function<std::vector<core::RegisteredBackend>()> backends;  ///< by name, as Engine::registrations()
  IdentifyPeer identify;                                           ///< of the Unix socket
  std::function<Task<Status>(core::AuditEntry)> audit;
  core::Credentials& credentials;
};

/// Returns `invalid` or `denied`, with the setting, for settings that no server can have: no listener, plain TCP to
/// others, nobody who could use it, files that cannot be used.
Status check_settings(const Settings& settings);

/// The gRPC services of an agent (docs/grpc.md): subscriptions, streams, the registry, health and reflection. Core
/// thread. Calls arrive on threads of gRPC, which only post to the core thread.
class Server {
 public:
  /// Checks the settings and their files. Nothing listens yet. `invalid` names the setting.
  static Result<std::unique_ptr<Server>> open(Settings settings, Dependencies deps);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// Adds the sinks of stored callbacks and their routes. Before the relay starts; call once.
  Task<Status> load();
  /// Binds and begins to serve. `conflict` or `unavailable` names the socket or port.
  Task<Status> start();
  void wake();  ///< to be called after each commit
  /// Ends all calls with UNAVAILABLE, and returns when none is left. Idempotent. The sinks stay with their host.
  Task<void> stop();
  /// Writes audit lines about refusals that had none. With `all` also those of this minute.
  Task<void> audit_unwritten_denials(bool all);

 private:
  struct State;  ///< private, so functions of the sources take it as a template parameter
  explicit Server(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace driftd::rpc
