// SPDX-License-Identifier: Apache-2.0
#include "k8s/prism.hpp"

#include <algorithm>

#include "k8s/backend_types.hpp"
#include "k8s/json_access.hpp"
#include "k8s/kinds.hpp"
#include "k8s/selector.hpp"

namespace driftd::k8s {
namespace {

std::optional<Ref> ref_in(const json& spec, const char* what, const char* type, const std::string& space) {
  const json& found = find(spec, {"discovery", what});
  const std::string name = text(found, {"name"}), other = text(found, {"namespace"});
  if (name.empty()) return std::nullopt;
  return Ref{type, other.empty() ? space : other, name};
}

Definition from_prism(const Ref& ref, const json& object) {
  const json& spec = find(object, {"spec"});
  Definition out;
  out.name = ref.name;
  out.space = ref.space;
  out.type = canonical_type(text(spec, {"type"}));
  out.prism = ref;
  out.service = ref_in(spec, "service", "Service", ref.space);
  out.secret = ref_in(spec, "secret", "Secret", out.service ? out.service->space : ref.space);
  out.config_map = ref_in(spec, "configMap", "ConfigMap", out.service ? out.service->space : ref.space);
  const std::string username = text(spec, {"discovery", "secret", "usernameKey"});
  const std::string password = text(spec, {"discovery", "secret", "passwordKey"});
  if (!username.empty()) out.username_key = username;
  if (!password.empty()) out.password_key = password;
  out.config_key = text(spec, {"discovery", "configMap", "key"});
  const json& port = find(spec, {"discovery", "service", "port"});
  if (port.is_number_integer()) out.port = port.get<std::int64_t>();
  if (find(spec, {"config"}).is_object()) out.overrides = find(spec, {"config"});
  out.capabilities = list(spec, {"capabilities"});
  if (find(spec, {"metadata"}).is_object()) out.metadata = find(spec, {"metadata"});
  return out;
}

void take_labelled(Definition& definition, const Ref& ref, const json& object, const std::string& group) {
  auto& slot = ref.type == "Service"  ? definition.service
               : ref.type == "Secret" ? definition.secret
                                      : definition.config_map;
  if (slot && *slot != ref) return;  // the first by name: the same each time
  slot = ref;
  const json& labels = find(object, {"metadata", "labels"});
  const json& annotations = find(object, {"metadata", "annotations"});
  const std::string type = text(labels, {(group + "/backend-type").c_str()});
  if (!type.empty()) definition.type = canonical_type(type);
  for (const auto& [name, key] : {std::pair{"/username-key", &definition.username_key},
                                  {"/password-key", &definition.password_key},
                                  {"/config-key", &definition.config_key}}) {
    const std::string value = text(annotations, {(group + name).c_str()});
    if (!value.empty()) *key = value;
  }
}

/// Guesses a missing type from the ports of the Service: each known type has a usual port.
void guess_type(Definition& definition, const Objects& objects) {
  const json& ports = list(find_object(objects, definition.service), {"spec", "ports"});
  for (const auto& known : kBackendTypes) {
    const auto usual = [&](const json& port) { return find(port, {"port"}) == json(known.port); };
    if (definition.type.empty() && std::any_of(ports.begin(), ports.end(), usual)) definition.type = known.name;
  }
}

}  // namespace

const json& find_object(const Objects& objects, const std::optional<Ref>& ref) {
  static const json kNull;
  const auto found = ref ? objects.find(*ref) : objects.end();
  return found == objects.end() ? kNull : found->second;
}

bool is_labelled(const json& object, const Settings& settings) {
  return selects(settings.discover, find(object, {"metadata", "labels"}));
}

sdk::Diagnostic fault_of(const Definition& definition, driftd_status code, const std::string& text,
                         const std::string& right) {
  return {code, kRegistration, definition.name, definition.space, text, right, 0, definition.name};
}

Definitions definitions(const Objects& objects, const Settings& settings, std::vector<sdk::Diagnostic>& diagnostics) {
  Definitions out;
  for (const auto& [ref, object] : objects) {
    if (ref.type == "PrismBackend") out.try_emplace({ref.name, ref.space}, from_prism(ref, object));
  }
  const std::string name_label = settings.group + "/backend-name";
  for (const auto& [ref, object] : objects) {
    if (ref.type == "PrismBackend" || !is_labelled(object, settings)) continue;
    const std::string label = text(object, {"metadata", "labels", name_label.c_str()});
    const std::string name = label.empty() ? ref.name : label;
    Definition& definition = out[{name, ref.space}];
    if (definition.prism) continue;  // it names its objects itself
    definition.name = name;
    definition.space = ref.space;
    take_labelled(definition, ref, object, settings.group);
  }
  for (auto at = out.begin(); at != out.end();) {
    guess_type(at->second, objects);
    const Definition& definition = at->second;
    const bool whole = !definition.type.empty() && definition.type.size() <= kMaxType;
    const std::string what = "backend " + definition.name + " in namespace " + definition.space;
    const std::string why = definition.type.empty()
                                ? " has no type; label it " + settings.group + "/backend-type"
                                : " has a type of " + std::to_string(definition.type.size()) + " bytes, at most 253";
    if (!whole) diagnostics.push_back(fault_of(definition, DRIFTD_INVALID, what + why));
    at = whole ? std::next(at) : out.erase(at);
  }
  return out;
}

std::vector<Ref> missing(const Definition& definition, const Objects& objects) {
  std::vector<Ref> out;
  for (const auto& ref : {definition.service, definition.secret, definition.config_map}) {
    if (ref && !objects.contains(*ref)) out.push_back(*ref);
  }
  return out;
}

}  // namespace driftd::k8s
