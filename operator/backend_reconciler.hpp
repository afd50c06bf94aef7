// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

#include "controller/reconciler.hpp"
#include "operator/backend_status.hpp"
#include "operator/client_pool.hpp"
#include "operator/kube_events.hpp"

namespace driftd::op {

/// Keeps the status of each PrismBackend true: whether what it names exists, its endpoint, and whether driftd's agent
/// has registered it. It writes nothing but that status, and Events. The agent itself discovers the PrismBackend.
class BackendReconciler final : public controller::Reconciler {
 public:
  struct Parts {
    ClusterView& view;
    Registry& registry;
    ClientPool& clients;
    KubeEvents& events;
  };
  BackendReconciler(Parts parts, Limits limits) : parts_(parts), limits_(std::move(limits)) {}

  controller::Outcome reconcile(const controller::Key& key, controller::Context& context) override;
  controller::Outcome finalize(const controller::Key& key, controller::Context& context) override;

 private:
  void write(const nlohmann::json& object, const BackendState& state, controller::Context& context);

  const Parts parts_;
  const Limits limits_;
};

}  // namespace driftd::op
