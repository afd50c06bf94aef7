// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "app/executors.hpp"
#include "config/config.hpp"
#include "core/ports/credentials.hpp"
#include "core/ports/reader.hpp"
#include "core/ports/registry.hpp"
#include "core/ports/store.hpp"
#include "core/ports/subscriptions.hpp"
#include "delivery/relay.hpp"

namespace driftd::app {

/// What the gRPC services need of the agent. All of it must outlive them.
struct GrpcNeeds {
  Executors& executors;
  core::Reader& reader;
  core::Subscriptions& subscriptions;
  core::Outbox& outbox;
  delivery::Relay& relay;
  core::ManualBackends& manual;
  std::function<std::vector<core::RegisteredBackend>()> backends;
  std::function<Task<Status>(core::AuditEntry)> audit;
  core::Credentials& credentials;
  std::function<void(std::vector<core::Route>)> route;  ///< replaces the routes to callbacks
};

/// The gRPC services of the agent. Core thread.
class Grpc {
 public:
  virtual ~Grpc() = default;
  virtual Task<Status> load() = 0;   ///< before the relay starts
  virtual Task<Status> start() = 0;  ///< listens
  virtual void wake() = 0;           ///< after each commit
  /// As admin::Api::audit_unwritten_denials(): call it now and then, and with `all` after stop().
  virtual Task<void> audit_unwritten_denials(bool all) = 0;
  virtual Task<void> stop() = 0;
};

/// Replaces this process by driftd-grpc, the same program with gRPC, and with the same arguments, if the configuration
/// has a section `grpc` or a change log and this program lacks gRPC: its 5 MiB are in no agent that does not use it.
/// The file is beside this binary. Returns only if there is nothing to do, or `invalid` if driftd-grpc is missing or
/// may be replaced by others. Call it before anything is opened that exec() would not close.
Status become_driftd_grpc(const config::Config& config);

/// Returns `invalid`, with the setting, if the configuration has the section and this program cannot serve it.
Status check_grpc(const config::Config& config);

/// Returns the services; null if the configuration has no section `grpc`. Returns `invalid` for wrong settings.
Result<std::unique_ptr<Grpc>> make_grpc(const config::Config& config, GrpcNeeds needs);

}  // namespace driftd::app
