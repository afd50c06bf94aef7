// SPDX-License-Identifier: Apache-2.0
#include "k8s/kinds.hpp"

#include <algorithm>

#include "k8s/json_access.hpp"

namespace driftd::k8s {
namespace {

/// Returns true if the kind is one of the cluster and the settings leave the cluster out.
bool is_of_cluster_only(const Resource& resource, const Settings& settings) {
  if (resource.namespaced || settings.namespaces.empty()) return false;
  return settings.scope.include.empty() || !settings.scope.wants_kind(resource.kind);
}

std::vector<Resource> of_cluster() {
  std::vector<Resource> out;
  const std::string rbac = "/apis/rbac.authorization.k8s.io/v1", storage = "/apis/storage.k8s.io/v1",
                    admission = "/apis/admissionregistration.k8s.io/v1";
  const auto add = [&](const char* kind, const std::string& base, const char* plural, const char* object) {
    out.push_back({kind, base, plural, object, false, {}, {}, nullptr, {}});
  };
  add("cluster_role", rbac, "clusterroles", "ClusterRole");
  add("cluster_role_binding", rbac, "clusterrolebindings", "ClusterRoleBinding");
  add("storage_class", storage, "storageclasses", "StorageClass");
  add("mutating_webhook_configuration", admission, "mutatingwebhookconfigurations", "MutatingWebhookConfiguration");
  add("validating_webhook_configuration", admission, "validatingwebhookconfigurations",
      "ValidatingWebhookConfiguration");
  add("custom_resource_definition", "/apis/apiextensions.k8s.io/v1", "customresourcedefinitions",
      "CustomResourceDefinition");
  add("ingress_class", "/apis/networking.k8s.io/v1", "ingressclasses", "IngressClass");
  add("priority_class", "/apis/scheduling.k8s.io/v1", "priorityclasses", "PriorityClass");
  return out;
}

void add_of_namespaces(std::vector<Resource>& out) {
  const std::string core = "/api/v1", rbac = "/apis/rbac.authorization.k8s.io/v1";
  const auto add = [&](const char* kind, const std::string& base, const char* plural, const char* object) {
    out.push_back({kind, base, plural, object, true, {}, {}, nullptr, {}});
  };
  add("network_policy", "/apis/networking.k8s.io/v1", "networkpolicies", "NetworkPolicy");
  add("role", rbac, "roles", "Role");
  add("role_binding", rbac, "rolebindings", "RoleBinding");
  add("horizontal_pod_autoscaler", "/apis/autoscaling/v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler");
  add("pod_disruption_budget", "/apis/policy/v1", "poddisruptionbudgets", "PodDisruptionBudget");
  add("service_account", core, "serviceaccounts", "ServiceAccount");
  out.push_back(cron_job_resource());
  add(kJob, cron_job_resource().base, "jobs", "Job");
  add("persistent_volume_claim", core, "persistentvolumeclaims", "PersistentVolumeClaim");
  add("resource_quota", core, "resourcequotas", "ResourceQuota");
  add("limit_range", core, "limitranges", "LimitRange");
}

}  // namespace

const Resource& cron_job_resource() {
  static const Resource kType{kCronJob, "/apis/batch/v1", "cronjobs", "CronJob", true, {}, {}, nullptr, {}};
  return kType;
}

const std::vector<Resource>& cluster_resources() {
  static const std::vector<Resource> kAll = of_cluster();
  return kAll;
}

const Resource* cluster_resource(const std::string& kind) {
  const auto& all = cluster_resources();
  const auto found = std::find_if(all.begin(), all.end(), [&](const auto& each) { return each.kind == kind; });
  return found == all.end() ? nullptr : &*found;
}

bool is_optional_kind(const std::string& kind) {
  return std::find(kOptionalKinds.begin(), kOptionalKinds.end(), kind) != kOptionalKinds.end();
}

std::string Resource::id(const std::string& space, const std::string& name) const {
  std::string place = space.empty() ? name : space + "/" + name;
  if (custom == nullptr) return place;
  return object + (custom->group.empty() ? "" : "." + custom->group) + "/" + place;
}

std::vector<Resource> known_resources(const Settings& settings) {
  const std::string core = "/api/v1", apps = "/apis/apps/v1", helm = "helm.sh/release.v1";
  std::vector<Resource> out = {
      {kSecret, core, "secrets", "Secret", true, "type!=" + helm, {}, nullptr, {}},
      {"config_map", core, "configmaps", "ConfigMap", true, {}, {}, nullptr, {}},
      {"service", core, "services", "Service", true, {}, {}, nullptr, {}},
      {"endpoint_slice", "/apis/discovery.k8s.io/v1", "endpointslices", "EndpointSlice", true, {}, {}, nullptr, {}},
      {"ingress", "/apis/networking.k8s.io/v1", "ingresses", "Ingress", true, {}, {}, nullptr, {}},
      {"deployment", apps, "deployments", "Deployment", true, {}, {}, nullptr, {}},
      {"stateful_set", apps, "statefulsets", "StatefulSet", true, {}, {}, nullptr, {}},
      {"daemon_set", apps, "daemonsets", "DaemonSet", true, {}, {}, nullptr, {}}};
  add_of_namespaces(out);
  out.insert(out.end(), cluster_resources().begin(), cluster_resources().end());
  out.push_back({kHelmRelease, core, "secrets", "Secret", true, "type=" + helm, "", nullptr, {}});
  std::erase_if(out, [&](const Resource& resource) { return is_of_cluster_only(resource, settings); });
  for (auto& resource : out) {
    const auto chosen = settings.selectors.find(resource.kind);
    if (chosen == settings.selectors.end()) continue;
    resource.label_selector += (resource.label_selector.empty() ? "" : ",") + chosen->second;
  }
  return out;
}

Place place_of(const Resource& resource, const std::string& id) {
  std::string rest = id;
  if (resource.custom != nullptr) {
    const std::string front = resource.id({}, {});
    if (!rest.starts_with(front)) return {};
    rest.erase(0, front.size());
  }
  const auto slash = rest.find('/');
  if (!resource.namespaced) return slash == std::string::npos ? Place{{}, rest} : Place{};
  if (slash == std::string::npos || slash == 0) return {};
  return {rest.substr(0, slash), rest.substr(slash + 1)};
}

}  // namespace driftd::k8s
