// SPDX-License-Identifier: Apache-2.0
#include "operator/cluster_view.hpp"

#include <random>

#include "base/digest.hpp"
#include "base/escape.hpp"
#include "base/log.hpp"
#include "kube/json_access.hpp"
#include "operator/failure_text.hpp"
#include "operator/shared_credentials.hpp"
#include "operator/types.hpp"

namespace driftd::op {
namespace {

using nlohmann::json;
using State = Sighting::State;

/// Of this process alone, so that nobody can guess what a digest is of.
Key random_key() {
  std::random_device random;
  Key out{};
  for (auto& byte : out) byte = static_cast<std::uint8_t>(random());
  return out;
}

k8s::Ref ref_of(const kube::Resource& resource, const json& object) {
  return {resource.object, kube::text(object, {"metadata", "namespace"}), kube::text(object, {"metadata", "name"})};
}

/// Only the names of a Secret's keys are kept: what they hold is nobody's business here.
json without_values(const json& data) {
  json out = json::object();
  if (!data.is_object()) return out;
  for (const auto& [key, value] : data.items()) out[key] = value.is_string() && value.empty() ? json("") : json("-");
  return out;
}

/// The version in which a Secret got what it holds: one with another label is the same. The digest of the values never
/// leaves the process.
void keep_version(const json& known, const json& object, json& kept) {
  kept["digest"] = content_digest(kube::find(object, {"data"}));
  if (kube::text(known, {"digest"}) == kube::text(kept, {"digest"})) {
    kept["metadata"]["resourceVersion"] = kube::find(known, {"metadata", "resourceVersion"});
  }
}

json trimmed(const kube::Resource& resource, json object) {
  const bool is_whole = resource.object == kPrismBackends.object || resource.object == kPrismPatterns.object ||
                        resource.object == kDeployments.object;
  if (is_whole) {
    object["metadata"].erase("managedFields");
    return object;
  }
  json out = {{"metadata",
               {{"name", kube::find(object, {"metadata", "name"})},
                {"namespace", kube::find(object, {"metadata", "namespace"})}}}};
  if (resource.object == kSecrets.object) {
    out["type"] = kube::find(object, {"type"});
    out["data"] = without_values(kube::find(object, {"data"}));
    out["metadata"]["resourceVersion"] = kube::find(object, {"metadata", "resourceVersion"});
    const json& shared = kube::find(object, {"metadata", "annotations", kSharedVersions});
    if (shared.is_string()) out["metadata"]["annotations"][kSharedVersions] = shared;
    return out;
  }
  json& spec = out["spec"];
  for (const char* name : {"type", "externalName", "ports", "clusterIP"}) {
    const json& value = kube::find(object, {"spec", name});
    if (!value.is_null()) spec[name] = value;
  }
  return out;
}

}  // namespace

std::string content_digest(const json& data) {
  static const Key kKey = random_key();
  return hmac_hex(kKey, {data.dump()});
}

void ClusterView::set_references(const std::string& backend, const std::vector<k8s::Ref>& references) {
  const std::lock_guard lock(mutex_);
  for (const auto& ref : references_[backend]) {
    const auto found = referrers_.find(ref);
    if (found == referrers_.end()) continue;
    found->second.erase(backend);
    if (found->second.empty()) referrers_.erase(found);
  }
  for (const auto& ref : references) referrers_[ref].insert(backend);
  if (references.empty()) {
    references_.erase(backend);
  } else {
    references_[backend] = references;
  }
}

Sighting ClusterView::find(const k8s::Ref& ref) const {
  const std::lock_guard lock(mutex_);
  const auto found = objects_.find(ref);
  const auto fault = faults_.find(ref.type);
  if (fault != faults_.end()) return {State::unknown, {}, fault->second};
  if (found != objects_.end()) return {State::found, found->second, {}};
  if (synced_.contains(ref.type)) return {State::missing, {}, {}};
  return {State::unknown, {}, "they have not been listed yet"};
}

std::string ClusterView::unreadable(const std::string& type) const {
  const std::lock_guard lock(mutex_);
  const auto fault = faults_.find(type);
  if (fault != faults_.end()) return fault->second;
  return synced_.contains(type) ? std::string() : "they have not been listed yet";
}

bool ClusterView::is_known(const std::string& type) const {
  const std::lock_guard lock(mutex_);
  return synced_.contains(type) || faults_.contains(type);
}

std::vector<std::string> ClusterView::backends() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> out;
  for (const auto& [ref, object] : objects_) {
    if (ref.type == kPrismBackends.object) out.push_back(ref.name);
  }
  return out;
}

std::map<std::string, std::size_t> ClusterView::count_by_phase() const {
  std::map<std::string, std::size_t> out{{"Pending", 0}, {"Discovered", 0}, {"Error", 0}};
  const std::lock_guard lock(mutex_);
  for (const auto& [ref, object] : objects_) {
    if (ref.type != kPrismBackends.object) continue;
    const std::string phase = kube::text(object, {"status", "phase"});
    ++out[out.contains(phase) ? phase : "Pending"];
  }
  return out;
}

std::map<std::string, std::string> ClusterView::faults() const {
  const std::lock_guard lock(mutex_);
  return faults_;
}

std::set<std::string> ClusterView::referring(const std::string& type) const {
  std::set<std::string> out;
  for (const auto& [ref, backends] : referrers_) {
    if (ref.type == type) out.insert(backends.begin(), backends.end());
  }
  return out;
}

void ClusterView::tell(const std::set<std::string>& backends) const {
  for (const auto& backend : backends) handlers_.on_reference(backend);
}

void ClusterView::on_object(const kube::Resource& resource, const kube::Observed& observed) {
  if (resource.object == kReleases.object) return handlers_.on_release(observed.object, observed.deleted);
  if (resource.object == kPatterns.object) return handlers_.on_patterns(observed.object, observed.deleted);
  const k8s::Ref ref = ref_of(resource, observed.object);
  std::set<std::string> concerned;
  {
    const std::lock_guard lock(mutex_);
    if (observed.deleted) {
      objects_.erase(ref);
    } else {
      json kept = trimmed(resource, observed.object);
      json& known = objects_[ref];
      if (resource.object == kSecrets.object) keep_version(known, observed.object, kept);
      // Only of a Service it is known whether what matters of it has changed; the rest counts as changed each time.
      if (resource.object == kServices.object && known == kept) return;
      known = std::move(kept);
    }
    const auto found = referrers_.find(ref);
    if (found != referrers_.end()) concerned = found->second;
  }
  if (resource.object == kPrismBackends.object) handlers_.on_backend(observed.object, observed.deleted);
  if (resource.object == kPrismPatterns.object) handlers_.on_application(observed.object, observed.deleted);
  tell(concerned);
}

void ClusterView::on_synced(const kube::Resource& resource) {
  std::set<std::string> concerned;
  {
    const std::lock_guard lock(mutex_);
    if (synced_.insert(resource.object).second) concerned = referring(resource.object);
  }
  if (resource.object == kPrismBackends.object) handlers_.on_backends_synced();
  if (resource.object == kReleases.object) handlers_.on_releases_synced();
  tell(concerned);
}

void ClusterView::on_failure(const kube::Resource& resource, const sdk::Failure& failure) {
  const std::string why = text_of(failure);
  log::room("operator").warn("{} cannot be followed: {}", resource.plural, escaped(why));
  std::set<std::string> concerned;
  {
    const std::lock_guard lock(mutex_);
    // While only the connection fails, what was seen stays as it was. A missing right is shown on the objects.
    const bool is_denied = failure.code == DRIFTD_DENIED || failure.code == DRIFTD_UNSUPPORTED;
    if (is_denied) {
      faults_[resource.object] = why;
      concerned = referring(resource.object);
    }
  }
  tell(concerned);
}

void ClusterView::on_recovered(const kube::Resource& resource) {
  log::room("operator").info("{} are followed again", resource.plural);
  std::set<std::string> concerned;
  {
    const std::lock_guard lock(mutex_);
    if (faults_.erase(resource.object) > 0) concerned = referring(resource.object);
  }
  tell(concerned);
}

}  // namespace driftd::op
