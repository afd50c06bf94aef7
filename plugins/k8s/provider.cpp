// SPDX-License-Identifier: Apache-2.0
#include "driftd/provider.hpp"

#include <algorithm>
#include <iterator>
#include <mutex>
#include <nlohmann/json.hpp>
#include <utility>

#include "driftd_schema_json.hpp"
#include "k8s/apply.hpp"
#include "k8s/backend_objects.hpp"
#include "k8s/catalog.hpp"
#include "k8s/helm.hpp"
#include "k8s/json_access.hpp"
#include "k8s/list_types.hpp"
#include "k8s/mapping.hpp"
#include "k8s/reader.hpp"
#include "k8s/registration.hpp"
#include "k8s/watcher.hpp"

namespace driftd::k8s {
namespace {

constexpr std::chrono::milliseconds kHealthMost{900};

class KubernetesInstance final : public sdk::Instance {
 public:
  explicit KubernetesInstance(Settings settings)
      : settings_(std::move(settings)),
        api_(settings_),
        catalog_(api_, settings_) {}

  sdk::RefreshResult refresh(sdk::Call& call, const sdk::Refresh& request) override {
    try {
      return refresh_once(call, request);
    } catch (...) {
      api_.cluster_guard().refresh_failed();
      throw;
    }
  }

  void read(sdk::Call& call, std::span<const sdk::Identity> ids) override {
    auto client = take_client(call);
    Reader reader(api_, settings_, *client, streaming_);
    const auto types = catalog_.served_types(call, *client);
    for (const auto& id : ids) {
      if (reader.read(call, id, types)) not_found(call, id);
    }
    park(std::move(client));
  }

  void watch(sdk::Call& call, const std::string& cursor) override {
    WatchTarget watched;
    {
      auto client = take_client(call);
      watched.resources = catalog_.served_types(call, *client).resources;
      park(std::move(client));
    }
    watched.scope = scope_of(watched.resources);
    Watcher(call, api_, settings_, std::move(watched), list_cache_, streaming_).run(call, cursor);
  }

  sdk::Discovery discover(sdk::Call& call, const sdk::Discoverer& to) override {
    auto client = take_client(call);
    kube::Lister lister(api_, *client, streaming_);
    BackendObjects backend_objects(api_, settings_, *client, lister);
    const std::int64_t sent = call.now_ns();
    const auto types = catalog_.served_types(call, *client);
    std::vector<sdk::Diagnostic> diagnostics;
    const Objects objects = backend_objects.collect(call, types.resources, diagnostics);
    const auto about_them = [](const sdk::Diagnostic& each) { return each.kind == kPrismBackend; };
    std::copy_if(types.diagnostics.begin(), types.diagnostics.end(), std::back_inserter(diagnostics), about_them);
    for (const auto& [place, definition] : backend_objects.definitions_of(objects, diagnostics)) {
      auto backend = backend_or_fault(definition, objects, settings_, diagnostics);
      if (!backend) continue;
      backend->observed_ns = sent;
      api_.cluster_guard().check(client.cluster);
      to.push(*backend);
    }
    for (const auto& diagnostic : fold_by_namespace(diagnostics)) call.diag(diagnostic);
    park(std::move(client));
    const bool knows_types = std::none_of(diagnostics.begin(), diagnostics.end(), about_them);
    return {knows_types && !backend_objects.is_partial(), 0};
  }

  sdk::Applied apply(sdk::Call& call, const sdk::Apply& request) override {
    auto client = take_client(call);
    const auto types = catalog_.served_types(call, *client);
    api_.cluster_guard().check(client.cluster);
    sdk::Applied out = ObjectApplier(api_, settings_, *client, applied_).apply(call, request, types.resources);
    park(std::move(client));
    return out;
  }

  sdk::Health health(sdk::Call& call) override {
    const auto begin = std::chrono::steady_clock::now();
    sdk::Health out;
    try {
      http::Options options = api_.bare_options(call);
      options.connect = std::min(options.connect, kHealthMost);
      http::Client client(options);  // its own: a refresh may be blocked
      out = probe_health(call, client);
    } catch (const sdk::Failure& failure) {
      out.state = failure.code == DRIFTD_UNAUTHENTICATED ? DRIFTD_HEALTH_DEGRADED : DRIFTD_HEALTH_DOWN;
      out.reason = failure.what();
    }
    const auto took = std::chrono::steady_clock::now() - begin;
    out.latency_us = std::chrono::duration_cast<std::chrono::microseconds>(took).count();
    return out;
  }

 private:
  sdk::RefreshResult refresh_once(sdk::Call& call, const sdk::Refresh& request) {
    const bool moved = api_.cluster_guard().begin_refresh();
    if (moved) park({});  // its connections may lead to the previous cluster
    if (!moved && !request.full && list_cache_.is_current(request.cursor)) return {true, 0};
    const auto sent = ListCache::Clock::now();
    auto client = take_client(call);
    Reader reader(api_, settings_, *client, streaming_);
    const auto types = catalog_.served_types(call, *client);
    for (const auto& diagnostic : types.diagnostics) call.diag(diagnostic);
    const bool whole = reader.refresh(call, request, types);
    ListCache::List list{reader.versions(), {}, scope_of(types.resources), sent};
    list.cursor = render_cursor(list.versions, list.scope);
    call.checkpoint(whole ? list.cursor : std::string());
    if (whole && request.kinds.empty()) list_cache_.store(std::move(list));
    park(std::move(client));
    return {};
  }

  http::Response probe(sdk::Call& call, http::Client& client, const std::string& path) {
    http::Request request = api_.get(call, path);
    request.timeout = std::min(request.timeout, kHealthMost);
    return client.send(call, request);
  }

  sdk::Health probe_health(sdk::Call& call, http::Client& client) {
    sdk::Health out;
    const http::Response ready = probe(call, client, "/readyz");
    if (!ready.ok()) {
      out.state = DRIFTD_HEALTH_DEGRADED;
      out.reason = "/readyz: HTTP status " + std::to_string(ready.status);
    }
    const http::Response version = probe(call, client, "/version");
    out.server_version = text(json::parse(version.body, nullptr, false), {"gitVersion"});
    const http::Response system = probe(call, client, kSystemPath);  // empty where the right to get it is missing
    out.system_identity = text(json::parse(system.body, nullptr, false), {"metadata", "uid"});
    if (out.system_identity.empty() && out.reason.empty()) {
      out.reason = std::string("GET ") + kSystemPath + ": HTTP status " + std::to_string(system.status);
      if (system.status == 403)
        out.reason += ": the right to get that namespace is missing, so another cluster is not noticed";
    }
    api_.cluster_guard().on_health(out.system_identity);
    return out;
  }

  std::string scope_of(const std::vector<Resource>& resources) {
    std::string out = settings_.server + " " + api_.cluster_guard().uid() + " " + settings_.scope.text();
    for (const auto& resource : resources) {
      out += " " + resource.base + "/" + resource.plural + "?" + resource.label_selector + resource.no_lists;
      if (resource.lists) out += resource.lists->table().dump();  // another meaning is another form of the bodies
    }
    for (const auto& space : settings_.namespaces) out += " " + space;
    return std::to_string(std::hash<std::string>{}(out));
  }

  /// A client, the TLS settings of its connections, and the cluster that was accepted when they were made.
  struct Parked {
    std::unique_ptr<http::Client> client;
    http::Tls tls;
    std::string cluster;
    http::Client& operator*() const { return *client; }
  };
  /// Returns the parked client, whose connections may still be open, or a new one.
  Parked take_client(sdk::Call& call) {
    http::Tls tls = api_.tls(call);
    std::string cluster = api_.cluster_guard().uid();
    {
      const std::lock_guard lock(mutex_);
      Parked parked = std::exchange(parked_, {});
      if (parked.client != nullptr && parked.tls == tls && parked.cluster == cluster) return parked;
    }
    return {std::make_unique<http::Client>(api_.options(call)), std::move(tls), std::move(cluster)};
  }
  void park(Parked client) {
    const std::lock_guard lock(mutex_);
    parked_ = std::move(client);
  }

  const Settings settings_;
  Api api_;
  Catalog catalog_;
  ListCache list_cache_;
  std::atomic<int> streaming_{-1};
  common::AppliedRequests applied_;  ///< only used by apply(), of which the host never runs two at once
  std::mutex mutex_;
  Parked parked_;
};

std::unique_ptr<sdk::Instance> open(sdk::Call&, std::string_view, std::string_view settings) {
  return std::make_unique<KubernetesInstance>(parse_settings(settings));
}

const sdk::Plugin& plugin() {
  static const sdk::Plugin kPlugin = [] {
    const auto schema = json::parse(driftd_schema_json);
    sdk::Plugin out;
    json kinds = json::array();
    for (const auto& [kind, document] : schema.at("kinds").items()) {
      out.schemas[kind] = document.dump();
      kinds.push_back(kind);
    }
    out.schemas["settings"] = schema.at("settings").dump();
    const json extensions = {{{"id", DRIFTD_EXT_WATCH}, {"revision", DRIFTD_EXT_WATCH_REVISION}},
                             {{"id", DRIFTD_EXT_DISCOVER}, {"revision", DRIFTD_EXT_DISCOVER_REVISION}},
                             {{"id", DRIFTD_EXT_APPLY}, {"revision", DRIFTD_EXT_APPLY_REVISION}}};
    out.describe = json{{"id", "k8s"},
                        {"version", "0.1.0"},
                        {"types", {"k8s", "kubernetes"}},
                        {"kinds", kinds},
                        {"extensions", extensions},
                        {"concurrency", 4},
                        {"metrics", json::array()},
                        {"free_form", schema.at("free_form")}}
                       .dump();
    out.has_watch = out.has_discover = out.has_apply = true;
    out.open = &open;
    return out;
  }();
  return kPlugin;
}

}  // namespace
}  // namespace driftd::k8s

DRIFTD_PROVIDER(driftd::k8s::plugin)
