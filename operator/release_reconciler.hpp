// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "controller/reconciler.hpp"
#include "operator/client_pool.hpp"
#include "operator/cluster_view.hpp"
#include "operator/helm_charts.hpp"
#include "operator/release_view.hpp"

namespace driftd::op {

/// Makes a PrismBackend of each Helm release of a known chart, and removes it with the release. Which one is a
/// release's is said by an annotation, not by its name; what a person has changed of it stays.
class ReleaseReconciler final : public controller::Reconciler {
 public:
  struct Parts {
    ClusterView& view;
    ReleaseView& releases;
    ClientPool& clients;
  };
  explicit ReleaseReconciler(Parts parts) : parts_(parts) {}

  /// The custom patterns that count from now on. Any thread.
  void set_patterns(std::vector<ChartPattern> patterns);

  controller::Outcome reconcile(const controller::Key& key, controller::Context& context) override;
  controller::Outcome finalize(const controller::Key& key, controller::Context& context) override;

 private:
  /// The object that the operator made of a release: null if there is none.
  nlohmann::json object_of(const controller::Key& key) const;
  controller::Outcome put(const Release& release, const ChartPattern& pattern, controller::Context& context);
  controller::Outcome remove(const nlohmann::json& object, const controller::Key& key, controller::Context& context);

  /// True if the API server refused to write this into the object as it is now, because a person wrote its fields.
  bool was_refused(const controller::Key& key, const nlohmann::json& object, const nlohmann::json& wanted);

  const Parts parts_;
  std::mutex mutex_;                                ///< guards the members below
  std::map<controller::Key, std::string> refused_;  ///< generation of the object, and what was to be written
  std::shared_ptr<const std::vector<ChartPattern>> patterns_ = std::make_shared<const std::vector<ChartPattern>>();
};

}  // namespace driftd::op
