// SPDX-License-Identifier: Apache-2.0
#include "operator/release_reconciler.hpp"

#include "base/escape.hpp"
#include "base/log.hpp"
#include "kube/json_access.hpp"
#include "operator/failure_text.hpp"
#include "operator/host_call.hpp"
#include "operator/types.hpp"

namespace driftd::op {
namespace {

using nlohmann::json;

constexpr std::chrono::seconds kCallTime{20};

std::string id_of(const controller::Key& key) { return key.name_space + "/" + key.name; }

/// A write that is refused for an object in this generation is refused again.
std::string attempt_of(const json& object, const json& wanted) {
  return kube::find(object, {"metadata", "generation"}).dump() + " " + wanted.dump();
}

/// Returns true if `object` has everything that `wanted` says.
bool contains(const json& object, const json& wanted) {
  if (!wanted.is_object()) return object == wanted;
  for (const auto& [name, value] : wanted.items()) {
    if (!object.is_object() || !object.contains(name) || !contains(object.at(name), value)) return false;
  }
  return true;
}

}  // namespace

void ReleaseReconciler::set_patterns(std::vector<ChartPattern> patterns) {
  const std::lock_guard lock(mutex_);
  patterns_ = std::make_shared<const std::vector<ChartPattern>>(std::move(patterns));
}

json ReleaseReconciler::object_of(const controller::Key& key) const {
  for (const auto& name : {backend_name({key.name_space, key.name, {}, {}}, false),
                           backend_name({key.name_space, key.name, {}, {}}, true)}) {
    Sighting seen = parts_.view.backend(name);
    if (seen.state == Sighting::State::found && release_of(seen.object) == key) return std::move(seen.object);
  }
  return nullptr;
}

controller::Outcome ReleaseReconciler::reconcile(const controller::Key& key, controller::Context& context) {
  for (const auto& kind : {kPrismBackends.object, std::string("HelmRelease")}) {
    const std::string why = parts_.view.unreadable(kind);
    if (!why.empty()) log::room("operator").debug("Helm release {}: waits: {}: {}", escaped(id_of(key)), kind, why);
    if (!why.empty()) return controller::Requeue{kind + ": " + why};  // what is not seen is not gone
  }
  std::shared_ptr<const std::vector<ChartPattern>> own;
  {
    const std::lock_guard lock(mutex_);
    own = patterns_;
  }
  const auto release = parts_.releases.find(key);
  const ChartPattern* pattern = release ? pattern_of(*release, *own) : nullptr;
  log::room("operator")
      .debug("Helm release {}: {}", escaped(id_of(key)),
             !release             ? "is not deployed"
             : pattern == nullptr ? "no pattern for chart " + escaped(release->chart)
                                  : "chart " + pattern->chart);
  try {
    if (pattern != nullptr) return put(*release, *pattern, context);
    if (parts_.releases.is_unreadable(key)) return controller::Success{};  // what cannot be read is not gone
    {
      const std::lock_guard lock(mutex_);
      refused_.erase(key);
    }
    parts_.view.set_references(reference_of(key), {});
    const json object = object_of(key);
    if (!object.is_null()) return remove(object, key, context);
  } catch (const sdk::Failure& failure) {
    return controller::Requeue{text_of(failure)};
  }
  return controller::Success{};
}

bool ReleaseReconciler::was_refused(const controller::Key& key, const json& object, const json& wanted) {
  const std::lock_guard lock(mutex_);
  const auto found = refused_.find(key);
  return found != refused_.end() && found->second == attempt_of(object, wanted);
}

controller::Outcome ReleaseReconciler::put(const Release& release, const ChartPattern& pattern,
                                           controller::Context& context) {
  const controller::Key key{release.space, release.name};
  parts_.view.set_references(reference_of(key), candidates(release, pattern));
  const json object = object_of(key);
  bool taken = false;
  if (object.is_null()) {
    const Sighting other = parts_.view.backend(backend_name(release, false));
    taken = other.state == Sighting::State::found;
    // Somebody wrote it by hand for this release, or took it over by removing the label: it stays as it is.
    if (taken && kube::text(other.object, {"spec", "metadata", "helm_release"}) == release.name &&
        kube::text(other.object, {"spec", "metadata", "namespace"}) == release.space) {
      return controller::Success{};
    }
  }
  const std::string name = object.is_null() ? backend_name(release, taken) : kube::text(object, {"metadata", "name"});
  const json wanted = backend_of_release(release, pattern, name, [&](const k8s::Ref& ref) {
    Sighting seen = parts_.view.find(ref);
    return seen.state == Sighting::State::found ? std::optional<json>(std::move(seen.object)) : std::nullopt;
  });
  if (!object.is_null() && contains(object, wanted)) return controller::Success{};
  if (was_refused(key, object, wanted)) return controller::Success{};
  HostCall host(context.stop, std::min(context.deadline, std::chrono::steady_clock::now() + kCallTime));
  try {
    parts_.clients.with(host.call(), [&](kube::ObjectClient& client) {
      // Without force: a field that a person wrote is a conflict, and stays.
      client.apply(host.call(), kPrismBackends, wanted, false);
    });
  } catch (const sdk::Failure& failure) {
    if (failure.code != DRIFTD_CONFLICT) throw;
    {
      const std::lock_guard lock(mutex_);
      refused_[key] = attempt_of(object, wanted);
    }
    log::room("operator")
        .info("PrismBackend {} stays as a person has changed it: {}", escaped(name), escaped(failure.what()));
    return controller::Success{};
  }
  if (object.is_null()) {
    log::room("operator")
        .info("auto-discovered backend: {} (from Helm release {}, chart {} {}){}", escaped(name), escaped(id_of(key)),
              escaped(release.chart), escaped(release.version),
              taken ? "; the name without the end belongs to another object" : "");
  }
  return controller::Success{};
}

controller::Outcome ReleaseReconciler::remove(const json& object, const controller::Key& key,
                                              controller::Context& context) {
  const std::string name = kube::text(object, {"metadata", "name"});
  HostCall host(context.stop, std::min(context.deadline, std::chrono::steady_clock::now() + kCallTime));
  parts_.clients.with(host.call(), [&](kube::ObjectClient& client) {
    client.remove(host.call(), kPrismBackends, {{}, name},
                  {kube::text(object, {"metadata", "uid"}), kube::text(object, {"metadata", "resourceVersion"})});
  });
  log::room("operator")
      .info("removed PrismBackend {}: Helm release {} is gone, or its chart is no longer known", escaped(name),
            escaped(id_of(key)));
  return controller::Success{};
}

controller::Outcome ReleaseReconciler::finalize(const controller::Key& key, controller::Context& context) {
  return reconcile(key, context);
}

}  // namespace driftd::op
