// SPDX-License-Identifier: Apache-2.0
#include "k8s/exceptions.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "k8s/json_access.hpp"

namespace driftd::k8s {
namespace {

constexpr std::string_view kWorkloads = "deployment stateful_set daemon_set",
                           kPods = "deployment stateful_set daemon_set job",
                           kWebhooks = "mutating_webhook_configuration validating_webhook_configuration";
constexpr std::string_view kServerKeeps =
                               "the server keeps it: it names this object, this version of it, or this write",
                           kLifetime =
                               "controllers and deletions write it; what an owner does to the object is compared",
                           kCopy = "an older name of serviceAccountName, which the server keeps equal to it",
                           kTimeOfTemplate = "nothing uses it in a template",
                           kBinding = "the volume controller notes the progress of the binding in it",
                           kReachable = "a controller notes in it where the object is reached and how healthy that is",
                           kAllocated = "allocated by the API server",
                           kInjected =
                               "a controller injects and rotates it, as the object's annotation asks; without "
                               "such an annotation it is compared",
                           kJobLabel = "the API server generates it from the job's uid",
                           kHollow =
                               "each of its fields is an option of its own, so without any of them it says nothing";

constexpr std::array kExceptions = {
    Exception{"*", "apiVersion", "", Handling::dropped, "the version in which the object is read, not a part of it"},
    Exception{"*", "kind", "", Handling::dropped, "it is the kind of the record"},
    Exception{"*", "status", "", Handling::dropped, "what controllers observe"},
    Exception{"*", "metadata.name", "", Handling::dropped, "it is the id of the record"},
    Exception{"*", "metadata.namespace", "", Handling::dropped, "it is in the id of the record"},
    Exception{"*", "metadata.generateName", "", Handling::dropped, "used once, to make the name"},
    Exception{"*", "metadata.uid", "", Handling::dropped,
              "it is the identity of the record: another one means recreated"},
    Exception{"*", "metadata.resourceVersion", "", Handling::dropped, kServerKeeps},
    Exception{"*", "metadata.generation", "", Handling::dropped, kServerKeeps},
    Exception{"*", "metadata.creationTimestamp", "", Handling::dropped, kServerKeeps},
    Exception{"*", "metadata.deletionTimestamp", "", Handling::dropped, kServerKeeps},
    Exception{"*", "metadata.deletionGracePeriodSeconds", "", Handling::dropped, kServerKeeps},
    Exception{"*", "metadata.selfLink", "", Handling::dropped, kServerKeeps},
    Exception{"*", "metadata.managedFields", "", Handling::dropped,
              "who wrote which field; the last writer is in the record's metadata"},
    Exception{"*", "metadata.finalizers", "", Handling::dropped, kLifetime},
    Exception{"*", "metadata.ownerReferences", "", Handling::dropped, kLifetime},
    Exception{"*", "metadata.annotations", "kubectl.kubernetes.io/last-applied-configuration", Handling::dropped,
              "a copy of what was applied; what came of it is compared"},
    Exception{"deployment", "metadata.annotations", "deployment.kubernetes.io/revision", Handling::dropped,
              "the deployment controller counts in it"},
    Exception{"daemon_set", "metadata.annotations", "deprecated.daemonset.template.generation", Handling::dropped,
              "the API server counts in it"},
    Exception{"config_map", "metadata.annotations", "control-plane.alpha.kubernetes.io/leader", Handling::dropped,
              "leader election: renewed every few seconds"},
    Exception{"endpoint_slice", "metadata.annotations", "endpoints.kubernetes.io/last-change-trigger-time",
              Handling::dropped, "the time of the last change"},
    Exception{"service", "metadata.annotations", "cloud.google.com/neg-status", Handling::dropped, kReachable},
    Exception{"ingress", "metadata.annotations", "ingress.kubernetes.io/backends", Handling::dropped, kReachable},
    Exception{"deployment stateful_set daemon_set service ingress", "metadata.annotations",
              "field.cattle.io/publicEndpoints", Handling::dropped, kReachable},
    Exception{"endpoint_slice", "endpoints", "", Handling::dropped,
              "pods come and go: they are in the status; DNS names are compared as `addresses`"},
    Exception{kPods, "spec.template.metadata.creationTimestamp", "", Handling::dropped, kTimeOfTemplate},
    Exception{"cron_job", "spec.jobTemplate.metadata.creationTimestamp", "", Handling::dropped, kTimeOfTemplate},
    Exception{"cron_job", "spec.jobTemplate.spec.template.metadata.creationTimestamp", "", Handling::dropped,
              kTimeOfTemplate},
    Exception{kPods, "spec.template.spec.serviceAccount", "", Handling::dropped, kCopy},
    Exception{"cron_job", "spec.jobTemplate.spec.template.spec.serviceAccount", "", Handling::dropped, kCopy},
    Exception{kWorkloads, "spec.replicas", "", Handling::owned,
              "an autoscaler sets it (settings.replica_owners); `replicas_owner` is compared"},
    Exception{"stateful_set", "spec.volumeClaimTemplates.[].apiVersion", "", Handling::dropped, "always v1"},
    Exception{"stateful_set", "spec.volumeClaimTemplates.[].kind", "", Handling::dropped,
              "always PersistentVolumeClaim"},
    Exception{"stateful_set", "spec.volumeClaimTemplates.[].status", "", Handling::dropped, "a template has no state"},
    Exception{"stateful_set", "spec.volumeClaimTemplates.[].metadata.creationTimestamp", "", Handling::dropped,
              kTimeOfTemplate},
    Exception{"service", "spec.clusterIP", "", Handling::filled_in, kAllocated},
    Exception{"service", "spec.clusterIPs", "", Handling::filled_in, kAllocated},
    Exception{"service", "spec.ipFamilies", "", Handling::filled_in, kAllocated},
    Exception{"service", "spec.healthCheckNodePort", "", Handling::filled_in, kAllocated},
    Exception{"service", "spec.ports.[].nodePort", "", Handling::filled_in, kAllocated},
    Exception{"service_account", "secrets", "", Handling::dropped,
              "the token controller of servers before 1.24 adds and rotates them"},
    Exception{"persistent_volume_claim", "spec.volumeName", "", Handling::filled_in, "a controller binds the claim"},
    Exception{"persistent_volume_claim", "spec.storageClassName", "", Handling::filled_in,
              "a controller gives a claim without a class the default one, also later"},
    Exception{"persistent_volume_claim", "metadata.annotations", "pv.kubernetes.io/bind-completed", Handling::dropped,
              kBinding},
    Exception{"persistent_volume_claim", "metadata.annotations", "pv.kubernetes.io/bound-by-controller",
              Handling::dropped, kBinding},
    Exception{"persistent_volume_claim", "metadata.annotations", "volume.kubernetes.io/storage-provisioner",
              Handling::dropped, kBinding},
    Exception{"persistent_volume_claim", "metadata.annotations", "volume.beta.kubernetes.io/storage-provisioner",
              Handling::dropped, kBinding},
    Exception{"persistent_volume_claim", "metadata.annotations", "volume.kubernetes.io/selected-node",
              Handling::dropped, kBinding},
    Exception{"persistent_volume_claim", "metadata.annotations", "volume.kubernetes.io/storage-resizer",
              Handling::dropped, kBinding},
    Exception{"job", "spec.selector.matchLabels", "batch.kubernetes.io/controller-uid", Handling::dropped, kJobLabel},
    Exception{"job", "spec.selector.matchLabels", "controller-uid", Handling::dropped, kJobLabel},
    Exception{"job", "spec.template.metadata.labels", "batch.kubernetes.io/controller-uid", Handling::dropped,
              kJobLabel},
    Exception{"job", "spec.template.metadata.labels", "controller-uid", Handling::dropped, kJobLabel},
    Exception{"job", "metadata.labels", "batch.kubernetes.io/controller-uid", Handling::dropped, kJobLabel},
    Exception{"job", "metadata.labels", "controller-uid", Handling::dropped, kJobLabel},
    Exception{"job", "metadata.annotations", "batch.kubernetes.io/job-tracking", Handling::dropped,
              "the job controller of servers before 1.27 marks its jobs with it"},
    Exception{kWebhooks, "webhooks.[].clientConfig.caBundle", "", Handling::injected, kInjected},
    Exception{"custom_resource_definition", "spec.conversion.webhook.clientConfig.caBundle", "", Handling::injected,
              kInjected},
    Exception{kPods, "spec.template.spec.*.[].securityContext.capabilities", "", Handling::hollow, kHollow},
    Exception{kPods, "spec.template.spec.*.[].securityContext", "", Handling::hollow, kHollow},
    Exception{kPods, "spec.template.spec.*.[].lifecycle", "", Handling::hollow, kHollow},
    Exception{kPods, "spec.template.spec.affinity.nodeAffinity", "", Handling::hollow, kHollow},
    Exception{kPods, "spec.template.spec.affinity.podAffinity", "", Handling::hollow, kHollow},
    Exception{kPods, "spec.template.spec.affinity.podAntiAffinity", "", Handling::hollow, kHollow},
    Exception{kPods, "spec.template.spec.affinity", "", Handling::hollow, kHollow},
    Exception{kPods, "spec.template.spec.dnsConfig", "", Handling::hollow, kHollow},
    Exception{kPods, "spec.template.spec.resources", "", Handling::hollow, kHollow},
    Exception{"cron_job", "spec.jobTemplate.spec.template.spec.*.[].securityContext.capabilities", "", Handling::hollow,
              kHollow},
    Exception{"cron_job", "spec.jobTemplate.spec.template.spec.*.[].securityContext", "", Handling::hollow, kHollow},
    Exception{"cron_job", "spec.jobTemplate.spec.template.spec.*.[].lifecycle", "", Handling::hollow, kHollow},
    Exception{"cron_job", "spec.jobTemplate.spec.template.spec.affinity.nodeAffinity", "", Handling::hollow, kHollow},
    Exception{"cron_job", "spec.jobTemplate.spec.template.spec.affinity.podAffinity", "", Handling::hollow, kHollow},
    Exception{"cron_job", "spec.jobTemplate.spec.template.spec.affinity.podAntiAffinity", "", Handling::hollow,
              kHollow},
    Exception{"cron_job", "spec.jobTemplate.spec.template.spec.affinity", "", Handling::hollow, kHollow},
    Exception{"cron_job", "spec.jobTemplate.spec.template.spec.dnsConfig", "", Handling::hollow, kHollow},
    Exception{"cron_job", "spec.jobTemplate.spec.template.spec.resources", "", Handling::hollow, kHollow},
    Exception{"resource_quota", "spec.scopeSelector", "", Handling::hollow, kHollow},
    Exception{"custom_resource_definition", "spec.versions.[].subresources", "", Handling::hollow, kHollow},
};

constexpr std::array<std::string_view, 5> kInjectors = {
    "cert-manager.io/inject-ca-from", "cert-manager.io/inject-ca-from-secret", "cert-manager.io/inject-apiserver-ca",
    "service.beta.openshift.io/inject-cabundle", "service.alpha.openshift.io/inject-cabundle"};

/// Returns true if `kinds`, names separated by spaces, has this one.
bool concerns(std::string_view kinds, std::string_view kind) {
  if (kinds == "*") return true;
  for (std::size_t at = kinds.find(kind); at != kinds.npos; at = kinds.find(kind, at + 1)) {
    const std::size_t end = at + kind.size();
    if ((at == 0 || kinds[at - 1] == ' ') && (end == kinds.size() || kinds[end] == ' ')) return true;
  }
  return false;
}

bool is_injected(const json& object) {
  const json& annotations = find(object, {"metadata", "annotations"});
  return annotations.is_object() && std::any_of(kInjectors.begin(), kInjectors.end(),
                                                [&](std::string_view each) { return annotations.contains(each); });
}

bool erase_in_list(json& list, std::span<const std::string> path) {
  bool emptied = false, rest = false;
  for (auto& element : list) {
    emptied = erase_at(element, path) || emptied;
    rest = rest || !element.is_structured() || !element.empty();
  }
  return emptied && !rest;
}

bool erase_in_members(json& object, std::span<const std::string> path) {
  bool erased = false;
  for (auto member = object.begin(); member != object.end();) {
    const bool empty = path.empty() || erase_at(*member, path);
    erased = erased || empty;
    member = empty ? object.erase(member) : std::next(member);
  }
  return erased && object.empty();
}

/// The paths of the hollow exceptions of a kind, inner ones first.
std::vector<std::vector<std::string>> hollow_paths(const std::string& kind) {
  std::vector<std::vector<std::string>> out;
  for (const auto& each : kExceptions) {
    if (each.handling == Handling::hollow && concerns(each.kinds, kind)) out.push_back(path_segments(each.path));
  }
  return out;
}

const std::vector<std::vector<std::string>>& hollow_paths_of(const std::string& kind) {
  static const auto kAll = [] {
    std::map<std::string, std::vector<std::vector<std::string>>> out;
    for (const char* each : {"deployment", "stateful_set", "daemon_set", "job", "cron_job", "resource_quota",
                             "custom_resource_definition"})
      out[each] = hollow_paths(each);
    return out;
  }();
  static const std::vector<std::vector<std::string>> kNone;
  const auto found = kAll.find(kind);
  return found == kAll.end() ? kNone : found->second;
}

/// Calls `on_parent` with each object that may have the last member of the path.
template <typename Json, typename OnParent>
void visit_parents(Json& from, std::span<const std::string> path, const OnParent& on_parent) {
  const std::string& name = path.front();
  const auto below = path.subspan(1);
  if (name == "[]" || name == "*") {
    if (name == "[]" ? !from.is_array() : !from.is_object()) return;
    for (auto& each : from) visit_parents(each, below, on_parent);
    return;
  }
  if (!from.is_object()) return;
  if (below.empty()) return on_parent(from, name);
  const auto member = from.find(name);
  if (member != from.end()) visit_parents(*member, below, on_parent);
}

bool is_hollow(const json& parent, const std::string& name) {
  const auto member = parent.find(name);
  return member != parent.end() && member->is_object() && member->empty();
}

}  // namespace

void remove_hollow(const std::string& kind, json& object) {
  for (const auto& path : hollow_paths_of(kind)) {
    visit_parents(object, path, [](json& parent, const std::string& name) {
      if (is_hollow(parent, name)) parent.erase(name);
    });
  }
}

bool has_hollow(const std::string& kind, const json& object) {
  bool found = false;
  for (const auto& path : hollow_paths_of(kind)) {
    visit_parents(object, path,
                  [&](const json& parent, const std::string& name) { found = found || is_hollow(parent, name); });
  }
  return found;
}

std::span<const Exception> exceptions() { return kExceptions; }
std::span<const std::string_view> injectors() { return kInjectors; }

std::vector<std::string> path_segments(std::string_view path) {
  std::vector<std::string> out;
  for (std::size_t from = 0; from <= path.size();) {
    const std::size_t dot = std::min(path.find('.', from), path.size());
    out.emplace_back(path.substr(from, dot - from));
    from = dot + 1;
  }
  return out;
}

bool erase_at(json& from, std::span<const std::string> path) {
  const std::string& name = path.front();
  const auto below = path.subspan(1);
  if (name == "[]") return from.is_array() && !below.empty() && erase_in_list(from, below);
  if (!from.is_object()) return false;
  if (name == "*") return erase_in_members(from, below);
  const auto member = from.find(name);
  if (member == from.end() || (!below.empty() && !erase_at(*member, below))) return false;
  from.erase(member);
  return from.empty();
}

void remove_exceptions(const std::string& kind, json& object) {
  static const auto kPaths = [] {
    std::array<std::vector<std::string>, kExceptions.size()> out;
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i] = path_segments(kExceptions[i].path);
      if (!kExceptions[i].member.empty()) out[i].emplace_back(kExceptions[i].member);
    }
    return out;
  }();
  const bool injected = is_injected(object);
  for (std::size_t i = 0; i < kPaths.size(); ++i) {
    const Exception& each = kExceptions[i];
    const bool applies = each.handling == Handling::dropped || (each.handling == Handling::injected && injected);
    if (applies && concerns(each.kinds, kind)) erase_at(object, kPaths[i]);
  }
}

}  // namespace driftd::k8s
