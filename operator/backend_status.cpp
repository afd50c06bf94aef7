// SPDX-License-Identifier: Apache-2.0
#include "operator/backend_status.hpp"

#include <algorithm>

#include "k8s/registration.hpp"
#include "kube/json_access.hpp"

namespace driftd::op {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxKeysShown = 10;

k8s::Settings settings_of(const Limits& limits) {
  k8s::Settings out;
  out.cluster_domain = limits.cluster_domain;
  return out;
}

std::string_view render(Truth truth) { return truth == Truth::yes ? "True" : truth == Truth::no ? "False" : "Unknown"; }

bool is_allowed(const std::string& space, const Limits& limits) {
  return limits.namespaces.empty() ||
         std::find(limits.namespaces.begin(), limits.namespaces.end(), space) != limits.namespaces.end();
}

/// A type of object that a PrismBackend names, in the words of its messages.
struct Named {
  const char* type;    ///< `Secret`
  const char* plural;  ///< `secrets`
};

/// Looks for one object. A message begins as the RFC's: `Service not found: services "redis-master" not found`.
Condition look(const char* condition, const Named& named, const std::optional<k8s::Ref>& ref, const Sighting& seen,
               const Limits& limits) {
  if (!ref) return {condition, Truth::yes, "NotNamed", std::string("it names no ") + named.type};
  const std::string begin = std::string(named.type) + " not found: ";
  if (!is_allowed(ref->space, limits)) {
    return {condition, Truth::no, "NamespaceNotAllowed",
            begin + "namespace " + ref->space + " is not one of those that the operator may look at; " +
                "expected one of --watch-namespaces"};
  }
  if (seen.state == Sighting::State::missing) {
    return {condition, Truth::no, "NotFound",
            begin + named.plural + " \"" + ref->name + "\" not found in namespace " + ref->space};
  }
  if (seen.state == Sighting::State::unknown) {
    return {condition, Truth::unknown, "Unreadable", std::string(named.plural) + " cannot be read: " + seen.reason};
  }
  return {condition, Truth::yes, "Found", named.type + (" " + ref->space) + "/" + ref->name};
}

/// `user, password`, at most kMaxKeysShown of them.
std::string names_of(const json& data) {
  std::string out;
  std::size_t shown = 0;
  if (!data.is_object()) return out;
  for (const auto& [name, value] : data.items()) {
    if (++shown > kMaxKeysShown) return out + ", …";
    out += (out.empty() ? "" : ", ") + name;
  }
  return out;
}

/// Checks that an object that was found has a value under a key.
void need_key(Condition& condition, const Named& named, const k8s::Ref& ref, const Sighting& seen,
              const std::string& key) {
  if (condition.truth != Truth::yes || seen.state != Sighting::State::found) return;
  const json& data = kube::find(seen.object, {"data"});
  if (data.is_object() && data.contains(key) && data.at(key) != json("")) return;
  const std::string there = names_of(data);
  condition.truth = Truth::no;
  condition.reason = "KeyMissing";
  condition.message = std::string(named.type) + " not found: " + named.plural + " \"" + ref.name + "\" in namespace " +
                      ref.space + " has no value under the key '" + key + "'; found " +
                      (there.empty() ? "no keys" : there);
}

Condition synced(const RegistryAnswer& agent, const std::string& endpoint, bool resolved) {
  using State = RegistryAnswer::State;
  if (agent.state == State::off) {
    return {"Synced", Truth::unknown, "NoAgent", "the operator was started without --agent"};
  }
  if (agent.state == State::unreachable) {
    return {"Synced", Truth::no, "AgentUnreachable", "Admin sync failed: " + agent.reason};
  }
  if (!resolved) return {"Synced", Truth::unknown, "NotResolved", "it is not resolved, so nothing is registered"};
  if (agent.state == State::waiting) {
    return {"Synced", Truth::unknown, "Waiting", "the registry of driftd's agent has not been read yet"};
  }
  if (!agent.backend) {
    return {"Synced", Truth::unknown, "NotRegistered", "driftd's agent has not registered it yet"};
  }
  if (agent.backend->source != "discovered") {
    return {"Synced", Truth::yes, "DefinedElsewhere",
            "the agent has a backend of this name from elsewhere: " + agent.backend->source + ", " +
                agent.backend->defined_at};
  }
  if (agent.backend->endpoint != endpoint) {
    return {"Synced", Truth::unknown, "EndpointDiffers",
            "driftd's agent still has the endpoint " + agent.backend->endpoint};
  }
  return {"Synced", Truth::yes, "Registered", "registered by " + agent.backend->defined_at};
}

/// The endpoint that the agent discovers, too: both ask the same function. Empty: none can be said.
std::string endpoint_of(const json& object, const k8s::Definition& definition, const Sighting& service,
                        const Limits& limits, std::string& fault) {
  k8s::Objects objects;
  if (definition.prism) objects[*definition.prism] = object;
  if (definition.service && service.state == Sighting::State::found) objects[*definition.service] = service.object;
  std::vector<sdk::Diagnostic> diagnostics;
  const auto backend = k8s::backend_or_fault(definition, objects, settings_of(limits), diagnostics);
  if (!diagnostics.empty()) fault = diagnostics.front().text;
  std::string out;
  for (const auto& each : backend ? backend->endpoints : std::vector<std::string>())
    out += (out.empty() ? "" : ",") + each;
  return out;
}

/// The first condition that is false, else the first that is unknown, says what is the matter.
const Condition* worst_of(const std::vector<Condition>& conditions) {
  for (const Truth truth : {Truth::no, Truth::unknown}) {
    const auto found = std::find_if(conditions.begin(), conditions.end(), [&](const Condition& condition) {
      return condition.truth == truth && condition.reason != "NoAgent";
    });
    if (found != conditions.end()) return &*found;
  }
  return nullptr;
}

}  // namespace

bool Limits::shares_with(const std::string& space) const {
  return std::any_of(share_with.begin(), share_with.end(),
                     [&](const std::string& each) { return each == "*" || each == space; });
}

std::vector<k8s::Ref> Defined::references() const {
  std::vector<k8s::Ref> out;
  if (!definition) return out;
  for (const auto& ref : {definition->service, definition->secret, definition->config_map}) {
    if (ref) out.push_back(*ref);
  }
  return out;
}

Defined read_definition(const json& object, const Limits& limits) {
  const k8s::Ref ref{"PrismBackend", {}, kube::text(object, {"metadata", "name"})};
  std::vector<sdk::Diagnostic> diagnostics;
  auto found = k8s::definitions({{ref, object}}, settings_of(limits), diagnostics);
  Defined out;
  if (!diagnostics.empty()) {
    out.fault = diagnostics.front().text;
  } else if (found.empty()) {
    out.fault = "it defines no backend";
  } else {
    out.definition = std::move(found.begin()->second);
  }
  return out;
}

BackendState examine(const json& object, const Defined& defined, const ClusterView& view, const Limits& limits,
                     const RegistryAnswer& agent) {
  BackendState out;
  if (!defined.definition) {
    out.phase = "Error";
    out.message = defined.fault;
    out.conditions = {{"Ready", Truth::no, "Invalid", defined.fault},
                      {"ServiceFound", Truth::unknown, "Invalid", {}},
                      {"SecretFound", Truth::unknown, "Invalid", {}},
                      {"Synced", Truth::unknown, "Invalid", {}}};
    return out;
  }
  const k8s::Definition& definition = *defined.definition;
  const auto seen = [&](const std::optional<k8s::Ref>& ref) { return ref ? view.find(*ref) : Sighting(); };
  const Sighting service = seen(definition.service), secret = seen(definition.secret),
                 map = seen(definition.config_map);
  const Named kSecret{"Secret", "secrets"}, kMap{"ConfigMap", "configmaps"};
  Condition found_service = look("ServiceFound", {"Service", "services"}, definition.service, service, limits);
  Condition found_secret = look("SecretFound", kSecret, definition.secret, secret, limits);
  if (definition.secret) need_key(found_secret, kSecret, *definition.secret, secret, definition.password_key);
  Condition found_map = look("ConfigMapFound", kMap, definition.config_map, map, limits);
  if (definition.config_map && !definition.config_key.empty()) {
    need_key(found_map, kMap, *definition.config_map, map, definition.config_key);
  }
  std::string fault;
  if (found_service.truth == Truth::yes) out.endpoint = endpoint_of(object, definition, service, limits, fault);
  if (found_service.truth == Truth::yes && out.endpoint.empty()) {
    found_service = {"ServiceFound", Truth::no, "NoEndpoint",
                     fault.empty() ? "Service not found: no endpoint can be made of it" : fault};
  }
  const bool resolved = found_service.truth == Truth::yes && found_secret.truth == Truth::yes;
  out.conditions = {std::move(found_service), std::move(found_secret), synced(agent, out.endpoint, resolved)};
  if (found_map.truth != Truth::yes) out.conditions.push_back(std::move(found_map));
  const Condition* worst = worst_of(out.conditions);
  out.phase = worst == nullptr ? "Discovered" : worst->truth == Truth::no ? "Error" : "Pending";
  out.message = worst == nullptr ? std::string() : worst->message;
  out.waits = resolved && out.phase == "Pending";
  Condition ready{"Ready", worst == nullptr ? Truth::yes : worst->truth,
                  worst == nullptr ? "Discovered" : worst->reason, out.message};
  out.conditions.insert(out.conditions.begin(), std::move(ready));
  return out;
}

json render_conditions(const std::vector<Condition>& conditions, const json& object, const std::string& now) {
  const json& generation = kube::find(object, {"metadata", "generation"});
  json out = json::array();
  for (const auto& each : conditions) {
    json made = {{"type", each.type},
                 {"status", render(each.truth)},
                 {"reason", each.reason},
                 {"message", each.message},
                 {"lastTransitionTime", now}};
    if (generation.is_number_integer()) made["observedGeneration"] = generation;
    for (const auto& old : kube::list(object, {"status", "conditions"})) {
      const bool same = kube::text(old, {"type"}) == each.type && kube::text(old, {"status"}) == made["status"];
      const std::string since = kube::text(old, {"lastTransitionTime"});
      if (same && !since.empty()) made["lastTransitionTime"] = since;
    }
    out.push_back(std::move(made));
  }
  return out;
}

json status_of(const BackendState& state, const json& object, const std::string& now) {
  json out = {{"phase", state.phase}, {"conditions", render_conditions(state.conditions, object, now)}};
  if (!state.endpoint.empty()) out["resolvedEndpoint"] = state.endpoint;
  const json& generation = kube::find(object, {"metadata", "generation"});
  if (generation.is_number_integer()) out["observedGeneration"] = generation;
  return out;
}

bool is_shown(const json& status, const json& object) {
  const json& shown = kube::find(object, {"status"});
  for (const char* name : {"phase", "resolvedEndpoint", "observedGeneration", "conditions"}) {
    if (kube::find(status, {name}) != kube::find(shown, {name})) return false;
  }
  return true;
}

}  // namespace driftd::op
