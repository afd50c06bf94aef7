// SPDX-License-Identifier: Apache-2.0
#include "k8s/backend_objects.hpp"

#include <algorithm>

#include "common/bounded_json.hpp"
#include "k8s/json_access.hpp"

namespace driftd::k8s {
namespace {

std::string plural_of(const std::string& type) {
  return type == "Service" ? "services" : type == "Secret" ? "secrets" : "configmaps";
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
  Objects out;
  for (const auto& known : resources) {
    const bool prism = known.kind == kPrismBackend;
    if (!prism && known.kind != kSecret && known.kind != "service" && known.kind != "config_map") continue;
    Resource resource = known;
    resource.label_selector = prism ? "" : settings_.discover;
    for (const auto& space : spaces_of(resource, settings_)) {
      lister_.list(call, resource, space, [&](const kube::Lister::Listed& listed) {
        shares_.put(out, ref_of(resource, listed.object), listed.object);
      });
    }
  }
  complete(call, out, diagnostics);
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

void BackendObjects::complete(sdk::Call& call, Objects& objects, std::vector<sdk::Diagnostic>& diagnostics) {
  std::vector<sdk::Diagnostic> unused;
  const auto& allowed = settings_.namespaces;
  references_.age();
  const auto all = definitions(objects, settings_, unused);
  shares_.count(objects, all, unused);
  unused.clear();
  for (const auto& [place, definition] : definitions(objects, settings_, unused)) {
    for (const auto& ref : missing(definition, objects)) {
      if (!allowed.empty() && std::find(allowed.begin(), allowed.end(), ref.space) == allowed.end()) continue;
      std::optional<Absence> absence = references_.known(ref, definition.space);
      if (!absence) {
        absence = read_reference(call, ref, definition.space, objects);
        if (absence) references_.note(ref, *absence);
      }
      if (!absence || absence->text.empty()) continue;
      const std::string what = "backend " + definition.name + " in namespace " + definition.space + ": ";
      diagnostics.push_back(fault_of(definition, absence->code, what + absence->text, absence->right));
    }
  }
  unused.clear();
  shares_.count(objects, definitions(objects, settings_, unused), {});  // with what they point to
  shares_.tell(diagnostics);
}

}  // namespace driftd::k8s
