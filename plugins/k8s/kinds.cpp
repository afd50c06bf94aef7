// SPDX-License-Identifier: Apache-2.0
#include "k8s/kinds.hpp"

#include "http/http.hpp"

namespace driftd::k8s {

std::string Resource::path(const std::string& space, const std::string& name) const {
  std::string out = base;
  if (namespaced && !space.empty()) out += "/namespaces/" + http::escape(space);
  out += "/" + plural;
  if (!name.empty()) out += "/" + http::escape(name);
  return out;
}

std::string Resource::right(const std::string& verb, const std::string& space) const {
  std::string group;  // `/apis/apps/v1` → `.apps`
  if (base.starts_with("/apis/")) group = "." + base.substr(6, base.find('/', 6) - 6);
  const std::string where = !namespaced ? "" : space.empty() ? " in all namespaces" : " in namespace " + space;
  return verb + " " + plural + group + where;
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
      {"daemon_set", apps, "daemonsets", "DaemonSet", true, {}, {}, nullptr, {}},
      {kHelmRelease, core, "secrets", "Secret", true, "type=" + helm, "owner=helm", nullptr, {}}};
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
