// SPDX-License-Identifier: Apache-2.0
#include "k8s/catalog.hpp"

#include "k8s/json_access.hpp"

namespace driftd::k8s {
namespace {

constexpr std::chrono::seconds kMaxCatalogAge{60};

}  // namespace

void Catalog::add_custom(sdk::Call& call, http::Client& client, const Custom& custom, const std::string& kind,
                         Answer& out) {
  const bool optional = kind == kPrismBackend;  // a cluster without the CRD has no such objects
  const std::string name = custom.kind + (custom.group.empty() ? "" : "." + custom.group);
  const auto missing = [&] {
    if (optional) return;
    out.diagnostics.push_back(
        {DRIFTD_UNSUPPORTED, kind, {}, "settings.objects", name + " is not served by this API server"});
  };
  std::string version = custom.version;
  if (version.empty() && !custom.group.empty()) {
    const http::Response group = send_get(call, api_, client, "/apis/" + http::escape(custom.group));
    if (group.status == 404) return missing();
    if (!group.ok()) throw refusal(group, "GET /apis/" + custom.group, kind, "get /apis/" + custom.group);
    version = text(json::parse(group.body, nullptr, false), {"preferredVersion", "version"});
  }
  const std::string base = custom.group.empty() ? "/api/" + (version.empty() ? "v1" : version)
                                                : "/apis/" + http::escape(custom.group) + "/" + http::escape(version);
  const http::Response types = send_get(call, api_, client, base);
  if (types.status == 404) return missing();
  if (!types.ok()) throw refusal(types, "GET " + base, kind, "get " + base);
  const json served = json::parse(types.body, nullptr, false);
  for (const auto& type : list(served, {"resources"})) {
    const std::string plural = text(type, {"name"});
    if (text(type, {"kind"}) != custom.kind || plural.find('/') != std::string::npos) continue;
    Resource found{kind, base, plural, custom.kind, find(type, {"namespaced"}) == json(true), {}, {}, nullptr, version};
    if (!optional) found.custom = &custom;
    const auto selector = settings_.selectors.find(kind);
    if (selector != settings_.selectors.end()) found.label_selector = selector->second;
    out.resources.push_back(std::move(found));
    return;
  }
  missing();
}

Catalog::Answer Catalog::served_types(sdk::Call& call, http::Client& client) {
  {
    const std::lock_guard lock(mutex_);
    if (!cached_.resources.empty() && std::chrono::steady_clock::now() - at_ < kMaxCatalogAge) return cached_;
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
  for (const auto& custom : settings_.objects) add(custom, kObject);
  const std::lock_guard lock(mutex_);
  if (!out.knows_all()) return out;  // asked again in the next cycle
  cached_ = out;
  at_ = std::chrono::steady_clock::now();
  return out;
}

}  // namespace driftd::k8s
