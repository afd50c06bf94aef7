// SPDX-License-Identifier: Apache-2.0
#include "driftd/provider.hpp"

#include <map>
#include <nlohmann/json.hpp>

#include "driftd_schema_json.hpp"
#include "terraform/client.hpp"
#include "terraform/mapping.hpp"

namespace driftd::terraform {
namespace {

constexpr const char* kKinds[] = {"state", "instance", "output"};

class TerraformInstance final : public sdk::Instance {
 public:
  explicit TerraformInstance(Settings settings) : settings_(std::move(settings)) {}

  sdk::RefreshResult refresh(sdk::Call& call, const sdk::Refresh& request) override {
    if (!request.full && !request.cursor.empty() && request.cursor == stamp_of(settings_.path)) return {true, 0};
    const Snapshot snapshot = read_state(call, settings_.path);
    const State state = parse_state(snapshot.text, settings_, snapshot.lock_age_s);
    std::map<std::string, std::uint64_t> counts;
    for (sdk::Record record : state.records) {
      if (!request.wants(record.kind) || !settings_.scope.wants(record.kind, record.id)) continue;
      record.observed_ns = snapshot.read_ns;
      ++counts[record.kind];
      if (!call.emit(record)) return {};  // the host wants us to stop: nothing is complete, nothing is vouched for
    }
    for (const char* kind : kKinds) {
      if (request.wants(kind) && settings_.scope.wants_kind(kind)) call.complete(kind, counts[kind]);
    }
    call.checkpoint(snapshot.stamp);
    return {};
  }

  void read(sdk::Call& call, std::span<const sdk::Identity> ids) override {
    const Snapshot snapshot = read_state(call, settings_.path);
    State state = parse_state(snapshot.text, settings_, snapshot.lock_age_s);
    std::map<std::pair<std::string, std::string>, sdk::Record*> known;
    for (auto& record : state.records) known[{record.kind, record.id}] = &record;
    for (const auto& id : ids) {
      const auto found = known.find({id.kind, id.id});
      if (found == known.end()) {
        not_found(call, id);
        continue;
      }
      found->second->observed_ns = snapshot.read_ns;
      call.emit(*found->second);
    }
  }

  sdk::Health health(sdk::Call& call) override {
    sdk::Health out;
    const std::int64_t begin = call.now_ns();
    try {
      const Snapshot snapshot = read_state(call, settings_.path);
      const State state = parse_state(snapshot.text, settings_, snapshot.lock_age_s);
      out.system_identity = state.lineage;
      out.server_version = state.terraform_version;
    } catch (const sdk::Failure& failure) {
      out.state = failure.code == DRIFTD_UNAVAILABLE ? DRIFTD_HEALTH_DOWN : DRIFTD_HEALTH_DEGRADED;
      out.reason = failure.what();
    }
    out.latency_us = (call.now_ns() - begin) / 1000;
    return out;
  }

  void watch(sdk::Call& call, const std::string&) override {
    // A hint is enough: the refresh that it starts reads a consistent file and knows what is missing from it.
    watch_file(call, settings_.path, [&call] { call.bookmark({}); });
  }

 private:
  const Settings settings_;
};

std::unique_ptr<sdk::Instance> open(sdk::Call&, std::string_view, std::string_view settings) {
  return std::make_unique<TerraformInstance>(parse_settings(settings));
}

const sdk::Plugin& plugin() {
  static const sdk::Plugin kPlugin = [] {
    const auto schema = nlohmann::json::parse(driftd_schema_json);
    sdk::Plugin out;
    for (const auto& [kind, document] : schema.at("kinds").items()) out.schemas[kind] = document.dump();
    out.schemas["settings"] = schema.at("settings").dump();
    const nlohmann::json watch = {{"id", DRIFTD_EXT_WATCH}, {"revision", DRIFTD_EXT_WATCH_REVISION}};
    out.describe = nlohmann::json{{"id", "terraform"},
                                  {"version", "0.1.0"},
                                  {"types", {"terraform", "tfstate", "opentofu"}},
                                  {"kinds", kKinds},
                                  {"extensions", {watch}},
                                  {"concurrency", 2},
                                  {"metrics", nlohmann::json::array()}}
                       .dump();
    out.has_watch = true;
    out.open = &open;
    return out;
  }();
  return kPlugin;
}

}  // namespace
}  // namespace driftd::terraform

DRIFTD_PROVIDER(driftd::terraform::plugin)
