// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "controller/reconciler.hpp"
#include "operator/client_pool.hpp"
#include "operator/host_call.hpp"
#include "operator/kube_events.hpp"
#include "operator/pattern_status.hpp"

namespace driftd::op {

/// Makes a Deployment of each PrismPattern whose slots all have their backend, and says in its status what is missing.
/// A Deployment that exists is kept while a backend is absent. It goes with its PrismPattern, by its owner reference.
class PatternReconciler final : public controller::Reconciler {
 public:
  struct Parts {
    ClusterView& view;
    ClientPool& clients;
    KubeEvents& events;
  };
  PatternReconciler(Parts parts, Limits limits) : parts_(parts), limits_(std::move(limits)) {}

  controller::Outcome reconcile(const controller::Key& key, controller::Context& context) override;
  controller::Outcome finalize(const controller::Key& key, controller::Context& context) override;

 private:
  /// Returns true if the Secret, as the view has it, is what this process wrote for these bindings.
  bool is_shared(const nlohmann::json& stored, const Bindings& bindings) const;
  /// Writes the Secret with the credentials of backends in other namespaces. Returns false if one of its name belongs
  /// to somebody else.
  bool share(kube::ObjectClient& client, HostCall& host, const nlohmann::json& pattern, const Bindings& bindings);
  /// Writes the Deployment if it is not as it should be. `current` becomes the one that is stored.
  Condition deploy(const nlohmann::json& pattern, const Bindings& bindings, nlohmann::json& current,
                   controller::Context& context);
  void write(const nlohmann::json& pattern, const PatternState& state, const nlohmann::json& status,
             controller::Context& context);

  const Parts parts_;
  const Limits limits_;
  /// A Secret that this process wrote.
  struct Shared {
    std::string versions, digest;  ///< shared_versions_of(), content_digest()
  };
  mutable std::mutex mutex_;
  std::map<kube::Place, Shared> shared_;  ///< guarded by mutex_
};

/// As what a PrismPattern is noted among those that refer to objects (ClusterView::set_references), and back.
std::string reference_of_pattern(const controller::Key& pattern);
std::optional<controller::Key> pattern_of_reference(const std::string& who);

}  // namespace driftd::op
