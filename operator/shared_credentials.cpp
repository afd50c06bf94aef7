// SPDX-License-Identifier: Apache-2.0
#include "operator/shared_credentials.hpp"

#include "kube/json_access.hpp"
#include "operator/pattern_deployment.hpp"

namespace driftd::op {
using nlohmann::json;

std::string shared_versions_of(const Bindings& bindings) {
  std::string out;
  for (const auto& each : bindings.slots) {
    if (!each.shared_from) continue;
    out += (out.empty() ? "" : ",") + each.slot + "=" + each.shared_from->space + "/" + each.shared_from->name + "/" +
           each.secret_version;
  }
  return out;
}

std::string shared_secret_name(const std::string& pattern) { return pattern + "-backends"; }

std::string shared_key(const std::string& slot, const char* what) { return slot + "." + what; }

json shared_secret_of(const json& pattern, const Bindings& bindings, const std::function<json(const k8s::Ref&)>& read) {
  const std::string name = kube::text(pattern, {"metadata", "name"});
  json data = json::object();
  for (const auto& each : bindings.slots) {
    if (!each.shared_from) continue;
    const json from = read(*each.shared_from);
    const auto copy = [&](const std::string& key, const char* what) {
      const std::string value = kube::text(from, {"data", key.c_str()});
      if (!value.empty()) data[shared_key(each.slot, what)] = value;
    };
    copy(each.shared_username_key, "username");
    copy(each.shared_password_key, "password");
  }
  return {{"apiVersion", "v1"},
          {"kind", "Secret"},
          {"metadata",
           {{"name", shared_secret_name(name)},
            {"namespace", kube::find(pattern, {"metadata", "namespace"})},
            {"labels", {{"app.kubernetes.io/managed-by", "driftd-operator"}}},
            {"annotations", {{kSharedVersions, shared_versions_of(bindings)}}},
            {"ownerReferences", json::array({owner_reference(pattern)})}}},
          {"type", "Opaque"},
          {"data", std::move(data)}};
}

}  // namespace driftd::op
