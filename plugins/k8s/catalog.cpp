// SPDX-License-Identifier: Apache-2.0
#include "k8s/catalog.hpp"

#include <algorithm>

#include "k8s/json_access.hpp"
#include "k8s/list_types.hpp"
#include "k8s/openapi.hpp"

namespace driftd::k8s {
namespace {

constexpr std::chrono::seconds kMaxCatalogAge{60};
constexpr std::chrono::minutes kMaxDocumentAge{10};

/// Returns the table of all kinds of a parsed document, by their names in the API.
json table_of(const json& document) {
  json kinds = json::object();
  std::vector<std::string> types;
  for (const auto& [name, schema] : find(document, {"components", "schemas"}).items()) {
    const json& named = list(schema, {"x-kubernetes-group-version-kind"});
    if (named.size() != 1) continue;
    kinds[text(named[0], {"kind"})] = name;
    types.push_back(name);
  }
  return {{"kinds", std::move(kinds)}, {"types", list_types_of(document, types)}};
}

}  // namespace

void Catalog::add_custom(sdk::Call& call, http::Client& client, const Custom& custom, const std::string& kind,
                         Answer& out) {
  const bool optional = is_optional_kind(kind);  // a cluster without the CRD has no such objects
  const std::string name = custom.kind + (custom.group.empty() ? "" : "." + custom.group);
  const auto missing = [&] {
    if (optional) return;
    const std::lock_guard lock(mutex_);
    const bool lost = served_.contains(&custom);
    out.lost_type = out.lost_type || lost;
    out.diagnostics.push_back({DRIFTD_UNSUPPORTED,
                               kind,
                               {},
                               "settings.objects",
                               name + (lost ? " is no longer" : " is not") + " served by this API server"});
  };
  std::string version = custom.version;
  if (version.empty() && !custom.group.empty()) {
    const http::Response group = send_request(call, api_, client, "/apis/" + http::escape(custom.group));
    if (group.status == 404) return missing();
    if (!group.ok()) throw refusal(group, "GET /apis/" + custom.group, kind, "get /apis/" + custom.group);
    version = text(json::parse(group.body, nullptr, false), {"preferredVersion", "version"});
  }
  const std::string base = custom.group.empty() ? "/api/" + (version.empty() ? "v1" : version)
                                                : "/apis/" + http::escape(custom.group) + "/" + http::escape(version);
  const http::Response types = send_request(call, api_, client, base);
  if (types.status == 404) return missing();
  if (!types.ok()) throw refusal(types, "GET " + base, kind, "get " + base);
  const json served = json::parse(types.body, nullptr, false);
  for (const auto& type : list(served, {"resources"})) {
    const std::string plural = text(type, {"name"});
    if (text(type, {"kind"}) != custom.kind || plural.find('/') != std::string::npos) continue;
    Resource found{kind, base, plural, custom.kind, find(type, {"namespaced"}) == json(true), {}, {}, nullptr, version};
    if (!optional) found.custom = &custom;
    if (kind != kPrismBackend) add_lists(call, client, custom, found);
    const auto selector = settings_.selectors.find(kind);
    if (selector != settings_.selectors.end()) found.label_selector = selector->second;
    out.resources.push_back(std::move(found));
    const std::lock_guard lock(mutex_);
    served_.insert(&custom);
    return;
  }
  missing();
}

void Catalog::add_lists(sdk::Call& call, http::Client& client, const Custom& custom, Resource& to) {
  const std::string path = to.base.substr(1);
  const Document found = document(call, client, path);
  const std::string what = "how its lists are compared is not known: /openapi/v3/" + path + ": ";
  if (!found.lists)
    to.no_lists = what + found.reason;
  else if (!found.lists->knows(custom.kind))
    to.no_lists = what + "it does not have the kind " + custom.kind;
  to.lists = found.lists;
}

Catalog::Document Catalog::document(sdk::Call& call, http::Client& client, const std::string& path) {
  {
    const std::lock_guard lock(mutex_);
    const auto known = documents_.find(path);
    if (known != documents_.end() && Clock::now() - known->second.at < kMaxDocumentAge) return known->second;
  }
  Document out{nullptr, {}, Clock::now()};
  try {
    const http::Response response = send_request(call, api_, client, "/openapi/v3/" + path,
                                                 [](http::Request& request) { request.max_body = kMaxOpenApi; });
    if (!response.ok())
      out.reason = "HTTP status " + std::to_string(response.status);
    else
      out.lists = std::make_shared<const ListTypes>(table_of(parse_openapi(response.body)));
  } catch (const sdk::Failure& failure) {
    if (failure.code != DRIFTD_CORRUPT && failure.code != DRIFTD_BUDGET) throw;
    out.reason = failure.what();
  }
  const std::lock_guard lock(mutex_);
  if (out.lists)
    documents_[path] = out;
  else
    documents_.erase(path);
  return out;
}

Catalog::Answer Catalog::served_types(sdk::Call& call, http::Client& client) {
  {
    const std::lock_guard lock(mutex_);
    if (!cached_.resources.empty() && Clock::now() - at_ < kMaxCatalogAge) return cached_;
  }
  Answer out{known_, {}};
  const bool prism = settings_.scope.wants_kind(kPrismBackend) || settings_.scope.wants_kind(kRegistration);
  const auto add = [&](const Custom& custom, const char* kind) {
    try {
      add_custom(call, client, custom, kind, out);
    } catch (const sdk::Failure& failure) {  // of one type: the others are still read
      if (failure.kind.empty() || failure.code == DRIFTD_UNAUTHENTICATED) throw;
      out.diagnostics.push_back({failure.code, kind, {}, {}, failure.what(), failure.right, failure.retry_after_ms});
    }
  };
  if (prism) add(prism_, kPrismBackend);
  if (settings_.scope.wants_kind(kGateway)) add(gateway_, kGateway);
  if (settings_.scope.wants_kind(kHttpRoute)) add(http_route_, kHttpRoute);
  for (const auto& custom : settings_.objects) add(custom, kObject);
  const std::lock_guard lock(mutex_);
  const auto lacks_lists = [](const Resource& resource) { return !resource.no_lists.empty(); };
  if (!out.knows_all() || std::any_of(out.resources.begin(), out.resources.end(), lacks_lists))
    return out;  // asked again in the next cycle
  cached_ = out;
  at_ = Clock::now();
  return out;
}

}  // namespace driftd::k8s
