// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "k8s/prism.hpp"
#include "kube/reflector.hpp"

namespace driftd::op {

/// An object as the operator last saw it.
struct Sighting {
  enum class State {
    found,
    missing,  ///< its type was listed whole, and it is not there
    unknown   ///< its type cannot be listed, or was not yet: `reason`
  };
  State state = State::unknown;
  /// Of a Service and a Secret only what matters; a Secret has its keys, without values, and their content_digest() as
  /// `digest`.
  nlohmann::json object;
  std::string reason;  ///< names the missing right
};

/// What a Secret holds, by a key of this process: equal for equal `data`, and good for nothing else.
std::string content_digest(const nlohmann::json& data);

/// What exists in the cluster of what the controllers need, as a Reflector reports it. Any thread; the handlers run on
/// the reflector's.
class ClusterView final : public kube::ReflectorHandler {
 public:
  /// Called with each PrismBackend that was seen, and with each that is gone; and with the names of the PrismBackends
  /// that name an object that has changed. Set before the reflector runs.
  struct Handlers {
    std::function<void(const nlohmann::json& object, bool gone)> on_backend;
    std::function<void(const std::string& backend)> on_reference;
    std::function<void(const nlohmann::json& object, bool gone)> on_application;  ///< a PrismPattern
    std::function<void()> on_backends_synced;                                     ///< all of them were listed
    /// A Secret of a Helm release; the ConfigMap of chart patterns. Whole, and not kept.
    std::function<void(const nlohmann::json& secret, bool gone)> on_release;
    std::function<void(const nlohmann::json& config_map, bool gone)> on_patterns;
    std::function<void()> on_releases_synced;  ///< all of them were listed
  };
  explicit ClusterView(Handlers handlers) : handlers_(std::move(handlers)) {}

  /// Notes what the PrismBackend refers to, so that a change of that is a reason to look at it again. Empty: nothing.
  void set_references(const std::string& backend, const std::vector<k8s::Ref>& references);
  Sighting find(const k8s::Ref& ref) const;
  Sighting backend(const std::string& name) const { return find({"PrismBackend", {}, name}); }
  std::vector<std::string> backends() const;
  /// Why objects of this type cannot be said to be missing; empty: they can.
  std::string unreadable(const std::string& type) const;
  /// False: objects of this type were not listed yet, and nothing is known to be in the way. When that changes,
  /// on_reference is called for all that refer to one.
  bool is_known(const std::string& type) const;
  std::map<std::string, std::size_t> count_by_phase() const;
  /// Each type that cannot be listed or watched now, with the reason.
  std::map<std::string, std::string> faults() const;

  void on_object(const kube::Resource& resource, const kube::Observed& observed) override;
  void on_synced(const kube::Resource& resource) override;
  void on_failure(const kube::Resource& resource, const sdk::Failure& failure) override;
  void on_recovered(const kube::Resource& resource) override;

 private:
  void tell(const std::set<std::string>& backends) const;
  std::set<std::string> referring(const std::string& type) const;  ///< with mutex_ held

  const Handlers handlers_;
  mutable std::mutex mutex_;                             ///< guards the members below
  std::map<k8s::Ref, nlohmann::json> objects_;           ///< trimmed
  std::map<k8s::Ref, std::set<std::string>> referrers_;  ///< PrismBackends by what they name
  std::map<std::string, std::vector<k8s::Ref>> references_;
  std::set<std::string> synced_;               ///< types that were listed whole
  std::map<std::string, std::string> faults_;  ///< by type
};

}  // namespace driftd::op
