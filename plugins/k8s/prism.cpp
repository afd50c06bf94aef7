// SPDX-License-Identifier: Apache-2.0
#include "k8s/prism.hpp"

#include <algorithm>

#include "k8s/backend_types.hpp"
#include "k8s/json_access.hpp"
#include "k8s/kinds.hpp"
#include "k8s/prism_spec.hpp"
#include "k8s/selector.hpp"

namespace driftd::k8s {
namespace {

/// Returns true if the settings leave out the namespaces of what a PrismBackend of the cluster names.
bool is_left_out(const Definition& definition, const Settings& settings) {
  if (!definition.space.empty() || settings.namespaces.empty()) return false;
  const auto& named = definition.service  ? definition.service
                      : definition.secret ? definition.secret
                                          : definition.config_map;
  const auto& spaces = settings.namespaces;
  return named && !named->space.empty() && std::find(spaces.begin(), spaces.end(), named->space) == spaces.end();
}

/// Adds the definition of a PrismBackend, or the diagnostics that say why there is none.
void take_prism(const Ref& ref, const json& object, const Settings& settings, Definitions& out,
                std::vector<sdk::Diagnostic>& diagnostics) {
  PrismSpec spec = parse_prism(ref, object);
  if (is_left_out(spec.definition, settings)) return;
  for (const auto& fault : spec.faults)
    diagnostics.push_back(fault_of(spec.definition, DRIFTD_INVALID, spec.definition.title() + ": " + fault));
  if (spec.elsewhere && spec.faults.empty()) {
    return diagnostics.push_back(
        fault_of(spec.definition, DRIFTD_UNSUPPORTED,
                 spec.definition.title() + ": it is in another cluster (spec.discovery.cluster), which this provider "
                                           "does not read; the operator registers it"));
  }
  if (spec.faults.empty()) out.try_emplace({ref.name, ref.space}, std::move(spec.definition));
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
    if (ref.type == "PrismBackend") take_prism(ref, object, settings, out, diagnostics);
  }
  const std::string name_label = settings.group + "/backend-name";
  for (const auto& [ref, object] : objects) {
    if (ref.type == "PrismBackend" || !is_labelled(object, settings)) continue;
    const std::string label = text(object, {"metadata", "labels", name_label.c_str()});
    const std::string name = label.empty() ? ref.name : label;
    if (objects.contains({"PrismBackend", ref.space, name})) continue;  // it names its objects itself
    Definition& definition = out[{name, ref.space}];
    definition.name = name;
    definition.space = ref.space;
    take_labelled(definition, ref, object, settings.group);
  }
  for (auto at = out.begin(); at != out.end();) {
    guess_type(at->second, objects);
    const Definition& definition = at->second;
    const bool whole = !definition.type.empty() && definition.type.size() <= kMaxType;
    const std::string why = definition.type.empty()
                                ? " has no type; label it " + settings.group + "/backend-type"
                                : " has a type of " + std::to_string(definition.type.size()) + " bytes, at most 253";
    if (!whole) diagnostics.push_back(fault_of(definition, DRIFTD_INVALID, definition.title() + why));
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
