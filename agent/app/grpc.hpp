// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "app/executors.hpp"
#include "config/config.hpp"
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
  std::function<void(std::vector<core::Route>)> route;  ///< replaces the routes to callbacks
};

/// The gRPC services of the agent, or nothing in a build without them. Core thread.
class Grpc {
 public:
  virtual ~Grpc() = default;
  virtual Task<Status> load() = 0;   ///< before the relay starts
  virtual Task<Status> start() = 0;  ///< listens
  virtual void wake() = 0;           ///< after each commit
  virtual Task<void> stop() = 0;
};

/// Returns the services; null if the configuration has no section `grpc`. Returns `invalid` for wrong settings, and if
/// this driftd was built without gRPC.
Result<std::unique_ptr<Grpc>> make_grpc(const config::Config& config, GrpcNeeds needs);

/// Returns `invalid`, with the setting, if the configuration has the section and it cannot be served, or if this driftd
/// was built without gRPC.
Status check_grpc(const config::Config& config);

}  // namespace driftd::app
