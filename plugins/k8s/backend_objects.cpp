// SPDX-License-Identifier: Apache-2.0
#include "k8s/backend_objects.hpp"

#include <algorithm>

#include "common/bounded_json.hpp"
#include "k8s/json_access.hpp"

namespace driftd::k8s {
namespace {

constexpr std::size_t kManyReferences = 16;  // to objects of one type in one namespace

std::string plural_of(const std::string& type) {
  return type == "Service" ? "services" : type == "Secret" ? "secrets" : "configmaps";
}

/// Returns what is not known without this list, and how to grant it.
std::string next_step(const Resource& resource, const std::string& space) {
  const bool prism = resource.kind == kPrismBackend;
  const std::string role = resource.namespaced && !space.empty() ? "Role" : "ClusterRole";
  return std::string("; ") + (prism ? "backends that PrismBackends define" : "backends that labels define") +
         " are not seen until a " + role + " grants it (see Rights in the README of the k8s provider), the others are";
}

/// Returns true if the status concerns every request, not one reference.
bool concerns_all(const http::Response& response) {
  return response.status == 401 || response.status == 429 || response.status >= 500;
}

}  // namespace

std::vector<std::string> spaces_of(const Resource& resource, const Settings& settings) {
  if (settings.namespaces.empty() || !resource.namespaced) return {std::string()};
  return settings.namespaces;
}

Ref ref_of(const Resource& resource, const json& object) {
  return {resource.object, text(object, {"metadata", "namespace"}), text(object, {"metadata", "name"})};
}

Objects BackendObjects::collect(sdk::Call& call, const std::vector<Resource>& resources,
                                std::vector<sdk::Diagnostic>& diagnostics) {
  references_ = {};
  shares_ = {};
  denied_.clear();
  Objects out;
  for (const auto& known : resources) {
    const bool prism = known.kind == kPrismBackend;
    if (!prism && known.kind != kSecret && known.kind != "service" && known.kind != "config_map") continue;
    Resource resource = known;
    resource.label_selector = prism ? "" : settings_.discover;
    for (const auto& space : spaces_of(resource, settings_)) list(call, resource, space, out, diagnostics);
  }
  complete(call, out, diagnostics);
  return out;
}

void BackendObjects::list(sdk::Call& call, const Resource& resource, const std::string& space, Objects& out,
                          std::vector<sdk::Diagnostic>& diagnostics) {
  try {
    lister_.list(call, resource, space, [&](const kube::Lister::Listed& listed) {
      shares_.put(out, ref_of(resource, listed.object), listed.object);
    });
  } catch (const sdk::Failure& failure) {
    if (failure.code != DRIFTD_DENIED) throw;
    denied_.emplace(resource.object, space);
    diagnostics.push_back({failure.code,
                           kRegistration,
                           {},
                           space,
                           failure.what() + next_step(resource, space),
                           failure.right,
                           failure.retry_after_ms});
  }
}

bool BackendObjects::hides(const Definition& definition) const {
  if (definition.prism) return is_denied("PrismBackend", definition.space);
  return is_denied("Service", definition.space) || is_denied("Secret", definition.space);
}

Definitions BackendObjects::definitions_of(const Objects& objects, std::vector<sdk::Diagnostic>& diagnostics) const {
  Definitions out = definitions(objects, settings_, diagnostics);
  std::erase_if(out, [&](const auto& item) { return hides(item.second); });
  for (auto& [place, definition] : out)
    definition.config_map_unknown = !definition.prism && is_denied("ConfigMap", definition.space);
  return out;
}

std::optional<Absence> BackendObjects::read_reference(sdk::Call& call, const Ref& ref, const std::string& space,
                                                      Objects& objects) {
  const std::string path =
      "/api/v1/namespaces/" + http::escape(ref.space) + "/" + plural_of(ref.type) + "/" + http::escape(ref.name);
  const http::Response response = send_request(call, api_, client_, path);
  if (response.status == 404 && reason_of(response.body) == "NotFound") return Absence{};
  const std::string right = "get " + plural_of(ref.type) + " in namespace " + ref.space;
  if (!response.ok()) {
    const sdk::Failure failure = refusal(response, "GET " + path, kRegistration, right);
    if (concerns_all(response)) throw failure;
    return Absence{failure.code, failure.what(), failure.right};
  }
  json object = common::parse_bounded(response.body).value;
  if (!object.is_object()) return Absence{DRIFTD_CORRUPT, "GET " + path + ": no JSON object", {}};
  if (shares_.put_for(objects, space, ref, std::move(object))) return std::nullopt;
  return Absence{
      DRIFTD_BUDGET,
      "its " + ref.type + " is left out: the objects that define backends in its namespace have reached their limit",
      {}};
}

bool BackendObjects::is_allowed(const std::string& space) const {
  const auto& allowed = settings_.namespaces;
  return allowed.empty() || std::find(allowed.begin(), allowed.end(), space) != allowed.end();
}

void BackendObjects::list_references(sdk::Call& call, const Definitions& all, Objects& objects) {
  std::map<std::pair<std::string, std::string>, std::set<Ref>> wanted;  // by type and namespace
  for (const auto& [place, definition] : all) {
    if (!definition.space.empty()) continue;
    for (const auto& ref : missing(definition, objects)) {
      const bool asks = is_allowed(ref.space) && is_object_name(ref.space) && !references_.is_noted(ref);
      if (asks) wanted[{ref.type, ref.space}].insert(ref);
    }
  }
  for (const auto& [of, refs] : wanted) {
    if (refs.size() >= kManyReferences) list_references(call, refs, objects);
  }
}

void BackendObjects::list_references(sdk::Call& call, const std::set<Ref>& wanted, Objects& objects) {
  const std::string &type = wanted.begin()->type, &space = wanted.begin()->space;
  const kube::Resource resource{kRegistration, "/api/v1", plural_of(type), type, true, {}, {}};
  try {
    lister_.list(call, resource, space, [&](const kube::Lister::Listed& listed) {
      const Ref ref{type, space, text(listed.object, {"metadata", "name"})};
      if (wanted.contains(ref) && !objects.contains(ref)) shares_.put_for(objects, {}, ref, listed.object);
    });
  } catch (const sdk::Failure& failure) {
    if (failure.code != DRIFTD_DENIED) throw;
    return;
  }
  for (const auto& ref : wanted) {
    if (!objects.contains(ref)) references_.note(ref, {});
  }
}

void BackendObjects::complete(sdk::Call& call, Objects& objects, std::vector<sdk::Diagnostic>& diagnostics) {
  std::vector<sdk::Diagnostic> unused;
  references_.age();
  const auto all = definitions_of(objects, unused);
  shares_.count(objects, all, unused);
  list_references(call, all, objects);
  unused.clear();
  for (const auto& [place, definition] : definitions_of(objects, unused)) {
    for (const auto& ref : missing(definition, objects)) {
      if (!is_allowed(ref.space)) continue;
      std::optional<Absence> absence = references_.known(ref, definition.space);
      if (!absence) {
        absence = read_reference(call, ref, definition.space, objects);
        if (absence) references_.note(ref, *absence);
      }
      if (!absence || absence->text.empty()) continue;
      const std::string what = definition.title() + ": ";
      diagnostics.push_back(fault_of(definition, absence->code, what + absence->text, absence->right));
    }
  }
  unused.clear();
  shares_.count(objects, definitions(objects, settings_, unused), {});  // with what they point to
  shares_.tell(diagnostics);
}

}  // namespace driftd::k8s
