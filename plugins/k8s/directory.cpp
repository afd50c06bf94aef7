// SPDX-License-Identifier: Apache-2.0
#include "k8s/directory.hpp"

#include <algorithm>

#include "common/bounded_json.hpp"
#include "k8s/tree.hpp"

namespace driftd::k8s {
namespace {

constexpr std::size_t kMost = 10'000;  // objects that define backends

std::string plural_of(const std::string& type) {
  return type == "Service" ? "services" : type == "Secret" ? "secrets" : "configmaps";
}

}  // namespace

std::vector<std::string> spaces_of(const Resource& resource, const Settings& settings) {
  if (settings.namespaces.empty() || !resource.namespaced) return {std::string()};
  return settings.namespaces;
}

Ref ref_of(const Resource& resource, const json& object) {
  return {resource.object, text(object, {"metadata", "namespace"}), text(object, {"metadata", "name"})};
}

bool is_labelled(const json& object, const Settings& settings) {
  const auto eq = settings.discover.find('=');
  const json& label = find(object, {"metadata", "labels", settings.discover.substr(0, eq).c_str()});
  return label.is_string() && (eq == std::string::npos || label == json(settings.discover.substr(eq + 1)));
}

Objects Directory::collect(sdk::Call& call, const std::vector<Resource>& resources) {
  Objects out;
  for (const auto& known : resources) {
    const bool prism = known.kind == kPrismBackend;
    if (!prism && known.kind != kSecret && known.kind != "service" && known.kind != "config_map") continue;
    Resource resource = known;
    resource.label_selector = prism ? "" : settings_.discover;
    for (const auto& space : spaces_of(resource, settings_)) {
      lister_.list(call, resource, space, [&](const Lister::Listed& listed) {
        out[ref_of(resource, listed.object)] = listed.object;
        if (out.size() > kMost) throw sdk::Failure(DRIFTD_BUDGET, "more than 10000 objects define backends", kRegistration);
      });
    }
  }
  complete(call, out);
  return out;
}

void Directory::complete(sdk::Call& call, Objects& objects) {
  std::vector<sdk::Diagnostic> unused;
  for (const auto& [place, definition] : definitions(objects, settings_, unused)) {
    for (const auto& ref : missing(definition, objects)) {
      const auto& allowed = settings_.namespaces;
      if (!allowed.empty() && std::find(allowed.begin(), allowed.end(), ref.space) == allowed.end()) continue;
      const std::string path = "/api/v1/namespaces/" + http::escape(ref.space) + "/" + plural_of(ref.type) + "/" + http::escape(ref.name);
      const http::Response response = ask(call, api_, client_, path);
      if (response.status == 404 && reason_of(response.body) == "NotFound") continue;
      const std::string right = "get " + plural_of(ref.type) + " in namespace " + ref.space;
      if (!response.ok()) throw refusal(response, "GET " + path, kRegistration, right);
      json object = common::parse_bounded(response.body).value;
      if (!object.is_object()) throw sdk::Failure(DRIFTD_CORRUPT, "GET " + path + ": no JSON object", kRegistration);
      objects[ref] = std::move(object);
    }
  }
}

}  // namespace driftd::k8s
