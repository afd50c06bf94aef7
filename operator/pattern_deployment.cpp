// SPDX-License-Identifier: Apache-2.0
#include "operator/pattern_deployment.hpp"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "base/digest.hpp"
#include "kube/json_access.hpp"
#include "operator/types.hpp"

namespace driftd::op {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxLabel = 63;

/// In a value of a Pod `$(NAME)` is replaced, and `$$` is one `$`.
std::string literal(const std::string& text) {
  std::string out;
  for (const char letter : text) out += letter == '$' ? "$$" : std::string(1, letter);
  return out;
}

/// Environment by name, so that its order does not depend on anything.
using Env = std::map<std::string, json>;

void set(Env& env, const std::string& name, const std::string& value) {
  env[name] = {{"name", name}};
  if (!value.empty()) env[name]["value"] = value;  // the API server leaves an empty one out, too
}

void set_secret(Env& env, const std::string& name, const Binding& binding, const std::string& key, bool optional) {
  json ref = {{"name", binding.secret}, {"key", key}};
  if (optional) ref["optional"] = true;
  env[name] = {{"name", name}, {"valueFrom", {{"secretKeyRef", std::move(ref)}}}};
}

void add_binding(Env& env, const Binding& binding) {
  const std::string prefix = env_prefix(binding.slot);
  set(env, prefix + "_TYPE", binding.type);
  set(env, prefix + "_ENDPOINT", binding.endpoint);
  set(env, prefix + "_HOST", binding.host);
  set(env, prefix + "_PORT", binding.port);
  if (!binding.backend.empty()) set(env, prefix + "_BACKEND", binding.backend);
  if (!binding.config.empty()) set(env, prefix + "_CONFIG", literal(binding.config));
  if (binding.secret.empty()) return;
  // Many Secrets hold a password alone.
  set_secret(env, prefix + "_USERNAME", binding, binding.username_key, true);
  set_secret(env, prefix + "_PASSWORD", binding, binding.password_key, false);
}

/// The former style as it is, but for the slots that have a backend.
std::string former_config(const json& spec) {
  json config = kube::find(spec, {"config"});
  if (!config.is_object()) return {};
  const json& bindings = kube::find(spec, {"backendBindings"});
  for (json::const_iterator each = bindings.begin(); bindings.is_object() && each != bindings.end(); ++each) {
    config.erase(each.key());
    if (config.contains("slots") && config.at("slots").is_object()) config["slots"].erase(each.key());
  }
  return config.dump();
}

json env_of(const json& spec, const Bindings& bindings) {
  Env env;
  const json& own = kube::find(spec, {"env"});
  for (json::const_iterator each = own.begin(); own.is_object() && each != own.end(); ++each) {
    if (each->is_string()) set(env, each.key(), each->get<std::string>());
  }
  const std::string config = former_config(spec);
  if (!config.empty()) set(env, "PATTERN_CONFIG", literal(config));
  for (const auto& binding : bindings.slots) add_binding(env, binding);
  json out = json::array();
  for (auto& [name, entry] : env) out.push_back(std::move(entry));
  return out;
}

json pod_annotations(const json& spec, const Bindings& bindings) {
  json backends = json::object();
  std::string versions;
  for (const auto& each : bindings.slots) {
    if (!each.backend.empty()) backends[each.slot] = each.backend;
    if (!each.secret.empty()) versions += (versions.empty() ? "" : ",") + each.slot + "=" + each.secret_version;
  }
  json out = json::object();
  if (!backends.empty()) out[kBackendBindings] = backends.dump();
  if (kube::text(spec, {"rollout", "onRotation"}) == "Restart" && !versions.empty()) out[kCredentials] = versions;
  return out;
}

/// Elements that the server added count for nothing; a list has as many elements as were set.
bool contains(const json& stored, const json& wanted) {
  if (wanted.is_object()) {
    for (const auto& [name, value] : wanted.items()) {
      if (!stored.is_object() || !stored.contains(name) || !contains(stored.at(name), value)) return false;
    }
    return true;
  }
  if (!wanted.is_array()) return stored == wanted;
  if (!stored.is_array() || stored.size() != wanted.size()) return false;
  for (std::size_t at = 0; at < wanted.size(); ++at) {
    if (!contains(stored.at(at), wanted.at(at))) return false;
  }
  return true;
}

}  // namespace

json deployment_of(const json& pattern, const Bindings& bindings) {
  const json& spec = kube::find(pattern, {"spec"});
  const std::string name = kube::text(pattern, {"metadata", "name"}), kind = kube::text(spec, {"pattern"}),
                    uid = kube::text(pattern, {"metadata", "uid"});
  const json selector = {{"prism.io/pattern", name.size() <= kMaxLabel ? name : uid}};
  json labels = selector;
  labels["app.kubernetes.io/managed-by"] = kFieldManager;
  json container = {{"name", kind.substr(0, kMaxLabel - 7) + "-runner"},
                    {"image", kube::find(spec, {"image"})},
                    {"env", env_of(spec, bindings)}};
  for (const char* field : {"imagePullPolicy", "command", "args", "resources"}) {
    kube::put(container, field, kube::find(spec, {field}));
  }
  json pod = {{"containers", json::array({std::move(container)})}};
  kube::put(pod, "serviceAccountName", kube::find(spec, {"serviceAccountName"}));
  json out = {{"apiVersion", kDeployments.api_version()},
              {"kind", kDeployments.object},
              {"metadata",
               {{"name", name},
                {"namespace", kube::find(pattern, {"metadata", "namespace"})},
                {"labels", labels},
                {"ownerReferences", json::array({owner_reference(pattern)})}}},
              {"spec",
               {{"selector", {{"matchLabels", selector}}},
                {"template",
                 {{"metadata", {{"labels", labels}, {"annotations", pod_annotations(spec, bindings)}}},
                  {"spec", std::move(pod)}}}}}};
  json& annotations = out["spec"]["template"]["metadata"];
  if (annotations["annotations"].empty()) annotations.erase("annotations");
  kube::put(out["spec"], "replicas", kube::find(spec, {"replicas"}));
  const Digest applied = digest(0, {out.dump()});
  out["metadata"]["annotations"][kApplied] = fmt::format("{:016x}{:016x}", applied.high, applied.low);
  return out;
}

void keep_scale(json& wanted, const json& pattern, const json& current) {
  const json& scaling = kube::find(pattern, {"spec", "autoscaling"});
  const json& replicas = kube::find(current, {"spec", "replicas"});
  const bool scales = scaling.is_object() && kube::find(scaling, {"enabled"}) != json(false);
  if (scales && replicas.is_number_integer()) wanted["spec"]["replicas"] = replicas;
}

json owner_reference(const json& pattern) {
  return {{"apiVersion", kPrismPatterns.api_version()},
          {"kind", kPrismPatterns.object},
          {"name", kube::find(pattern, {"metadata", "name"})},
          {"uid", kube::find(pattern, {"metadata", "uid"})},
          {"controller", true}};
}

bool is_deployed(const json& stored, const json& wanted) {
  json compared = wanted;
  // The API server writes quantities in a form of its own; the digest tells whether they were changed here.
  compared["spec"]["template"]["spec"]["containers"][0].erase("resources");
  return contains(stored, compared);
}

bool is_owned(const json& deployment, const json& pattern) {
  for (const auto& each : kube::list(deployment, {"metadata", "ownerReferences"})) {
    if (kube::text(each, {"uid"}) == kube::text(pattern, {"metadata", "uid"})) return true;
  }
  return false;
}

}  // namespace driftd::op
