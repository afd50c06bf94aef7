// SPDX-License-Identifier: Apache-2.0
#include "operator/pattern_bindings.hpp"

#include <algorithm>
#include <cctype>
#include <set>

#include "k8s/backend_types.hpp"
#include "kube/json_access.hpp"
#include "operator/shared_credentials.hpp"

namespace driftd::op {
namespace {

using nlohmann::json;
using State = Binding::State;

/// What a slot leads to, in the form of a PrismBackend, so that both are read by the same code.
struct Source {
  json object;        ///< null: `state` and `message` say why not
  std::string title;  ///< for messages
  State state = State::error;
  std::string message;
};

std::vector<std::string> labels_of(const std::string& name) {
  std::vector<std::string> out(1);
  for (const char letter : name) {
    if (letter == '.') {
      out.emplace_back();
    } else {
      out.back() += letter;
    }
  }
  return out;
}

/// Splits a DNS name of a Service. Returns a reference without a name if it is none.
k8s::Ref service_of(const std::string& dns, const std::string& own_space, const std::string& domain) {
  const auto labels = labels_of(dns);
  const std::string space = labels.size() > 1 ? labels[1] : own_space;
  const std::string begin = labels[0] + "." + space;
  const bool known = labels.size() <= 2 || dns == begin + ".svc" || dns == begin + ".svc." + domain;
  return {"Service", space, known ? labels[0] : std::string()};
}

std::string type_of_port(const json& port) {
  for (const auto& known : k8s::kBackendTypes) {
    if (port == known.port) return known.alias;
  }
  return {};
}

/// The type that `discover` means: as it says, else that of its port, else that of a port of the Service.
std::string discovered_type(const json& discover, const Sighting& service) {
  std::string type = kube::text(discover, {"type"});
  if (!type.empty()) return type;
  const json& port = kube::find(discover, {"port"});
  if (!port.is_null()) return type_of_port(port);
  for (const auto& each : kube::list(service.object, {"spec", "ports"})) {
    type = type_of_port(kube::find(each, {"port"}));
    if (!type.empty()) return type;
  }
  return {};
}

Source discovered(const json& discover, const Binding& binding, const std::string& space, const ClusterView& view,
                  const Limits& limits, std::vector<k8s::Ref>& references) {
  const std::string dns = kube::text(discover, {"service"});
  const k8s::Ref ref = service_of(dns, space, limits.cluster_domain);
  if (ref.name.empty()) {
    return {nullptr,
            {},
            State::error,
            "discover.service: expected the DNS name of a Service, such as redis.infrastructure.svc." +
                limits.cluster_domain + ", found " + dns};
  }
  references.push_back(ref);
  const Sighting service = view.find(ref);
  std::string type = discovered_type(discover, service);
  // What is missing is said of the Service first: without it nothing can be said of its type.
  if (type.empty() && service.state != Sighting::State::found) type = k8s::kBackendTypes.front().alias;
  if (type.empty()) {
    return {nullptr,
            {},
            State::error,
            "discover.type: expected one of " + k8s::backend_type_names() + ", because the port of " + dns +
                " is the usual one of none; found none"};
  }
  json discovery = {{"service", {{"name", ref.name}, {"namespace", ref.space}}}};
  kube::put(discovery["service"], "port", kube::find(discover, {"port"}));
  json secret = kube::find(discover, {"secret"});
  if (secret.is_object()) {
    secret["namespace"] = space;
    discovery["secret"] = std::move(secret);
  }
  return {{{"apiVersion", "prism.io/v1alpha1"},
           {"kind", "PrismBackend"},
           {"metadata", {{"name", binding.slot}}},
           {"spec", {{"type", type}, {"discovery", std::move(discovery)}}}},
          "Service " + dns,
          State::bound,
          {}};
}

Source referenced(const std::string& name, const ClusterView& view) {
  const Sighting seen = view.backend(name);
  const std::string title = "PrismBackend " + name;
  if (seen.state == Sighting::State::found) return {seen.object, title, State::bound, {}};
  if (seen.state == Sighting::State::missing) {
    return {nullptr, title, State::missing,
            title + " does not exist; create it, or correct backendRef (kubectl get prismbackend lists them)"};
  }
  return {nullptr, title, State::not_ready, title + " cannot be read: " + seen.reason};
}

void set_endpoint(Binding& binding, const std::string& endpoint) {
  binding.endpoint = endpoint;
  const std::string first = endpoint.substr(0, endpoint.find(','));
  const std::size_t colon = first.rfind(':');
  binding.host = first.substr(0, colon);
  if (colon != first.npos) binding.port = first.substr(colon + 1);
  if (binding.host.starts_with('[')) binding.host = binding.host.substr(1, binding.host.size() - 2);
}

/// The Pods use the operator's copy.
void share(Binding& binding, const k8s::Ref& from, const std::string& pattern) {
  binding.shared_from = from;
  binding.shared_username_key = binding.username_key;
  binding.shared_password_key = binding.password_key;
  binding.secret = shared_secret_name(pattern);
  binding.username_key = shared_key(binding.slot, "username");
  binding.password_key = shared_key(binding.slot, "password");
}

/// Fills in what the backend says, or why it cannot be used by the PrismPattern of that name and namespace.
void take(Binding& binding, const Source& source, const kube::Place& user, const ClusterView& view,
          const Limits& limits, std::vector<k8s::Ref>& references) {
  const auto& [space, pattern] = user;
  const Defined defined = read_definition(source.object, limits);
  for (const auto& ref : defined.references()) references.push_back(ref);
  const BackendState found = examine(source.object, defined, view, limits, RegistryAnswer{});
  if (!found.endpoint.empty()) set_endpoint(binding, found.endpoint);
  for (const auto& condition : found.conditions) {
    const bool matters = condition.type != "Synced" && condition.truth != Truth::yes;
    if (!matters || condition.type == "Ready") continue;
    const bool is_service = condition.type == "ServiceFound" && condition.reason == "NotFound";
    binding.state = is_service && binding.backend.empty() ? State::missing : State::not_ready;
    binding.message = source.title + ": " + (condition.message.empty() ? found.message : condition.message);
    return;
  }
  const k8s::Definition& definition = *defined.definition;
  binding.type = definition.type;
  if (!definition.overrides.empty()) binding.config = definition.overrides.dump();
  const bool is_elsewhere = definition.secret && definition.secret->space != space;
  if (is_elsewhere && !limits.shares_with(space)) {
    binding.state = State::error;
    binding.message =
        source.title + " has its credentials in Secret " + definition.secret->space + "/" + definition.secret->name +
        ", and a Pod can only use Secrets of its own namespace " + space + "; copy the Secret into namespace " + space +
        " and bind the slot by discover with service and secret, move the PrismPattern to namespace " +
        definition.secret->space + ", or let the operator share it (--share-credentials-with " + space + ")";
    return;
  }
  if (definition.secret) {
    binding.secret = definition.secret->name;
    binding.username_key = definition.username_key;
    binding.password_key = definition.password_key;
    binding.secret_version = kube::text(view.find(*definition.secret).object, {"metadata", "resourceVersion"});
  }
  if (is_elsewhere) share(binding, *definition.secret, pattern);
  binding.state = State::bound;
}

}  // namespace

bool Bindings::all_bound() const {
  return std::all_of(slots.begin(), slots.end(), [](const Binding& each) { return each.state == State::bound; });
}

std::string env_prefix(const std::string& slot) {
  std::string out;
  for (const char letter : slot) {
    out += letter == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  }
  return out;
}

Bindings bindings_of(const json& pattern, const ClusterView& view, const Limits& limits) {
  Bindings out;
  const std::string space = kube::text(pattern, {"metadata", "namespace"});
  const json& slots = kube::find(pattern, {"spec", "backendBindings"});
  if (!slots.is_object()) return out;
  std::set<std::string> prefixes;
  for (const auto& [slot, wish] : slots.items()) {
    Binding binding;
    binding.slot = slot;
    binding.backend = kube::text(wish, {"backendRef"});
    Source source;
    if (!binding.backend.empty()) {
      out.references.push_back({"PrismBackend", {}, binding.backend});
      source = referenced(binding.backend, view);
    } else {
      source = discovered(kube::find(wish, {"discover"}), binding, space, view, limits, out.references);
    }
    if (!prefixes.insert(env_prefix(slot)).second) {
      binding.message =
          "another slot has the same environment variables, " + env_prefix(slot) + "_…; rename one of them";
    } else if (source.object.is_null()) {
      binding.state = source.state;
      binding.message = source.message;
    } else {
      take(binding, source, {space, kube::text(pattern, {"metadata", "name"})}, view, limits, out.references);
    }
    out.slots.push_back(std::move(binding));
  }
  return out;
}

}  // namespace driftd::op
