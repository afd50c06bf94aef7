// SPDX-License-Identifier: Apache-2.0
#include "driftd/provider.hpp"

#include <atomic>
#include <nlohmann/json.hpp>

#include "common/identity_guard.hpp"
#include "common/plain_transport.hpp"
#include "common/shown_url.hpp"
#include "driftd_schema_json.hpp"
#include "terraform/apply.hpp"
#include "terraform/discovery.hpp"
#include "terraform/last_reading.hpp"
#include "terraform/source.hpp"
#include "terraform/state_emitter.hpp"

namespace driftd::terraform {
namespace {

class TerraformInstance final : public sdk::Instance {
 public:
  explicit TerraformInstance(Settings settings) : settings_(std::move(settings)), source_(open_source(settings_)) {}

  sdk::RefreshResult refresh(sdk::Call& call, const sdk::Refresh& request) override {
    const Cursor known = parse_cursor(request.cursor, settings_.fingerprint);
    const Fetched fetched = source_->fetch(call, request.full ? std::string() : known.stamp);
    // Every cycle reports that a state is encrypted, which needs no second read of it.
    if (fetched.unchanged && !known.head.encrypted) {
      lineage_.check(known.head.lineage, known.head.lineage);
      has_none_ = known.head.lineage.empty();
      return {true, settings_.poll.count()};
    }
    const Cursor before = last_reading_.value_or(known);
    const Reading reading = fetched.unchanged ? again(known, fetched, call) : read_fetched(fetched, before);
    lineage_.check(reading.head.lineage, before.head.lineage);
    has_none_ = reading.head.lineage.empty();
    StateEmitter emitter(call, settings_, reading, request, before.reported_backends);
    // The host asks to stop: nothing is complete.
    if (!emitter.run(fetched.state)) return {};
    const Cursor now{fetched.unchanged ? known.stamp : fetched.stamp, reading.history, reading.head,
                     emitter.reported_backends()};
    if (!fetched.unchanged && !reading.head.encrypted) discovery_.learn(fetched.stamp, std::move(emitter.found()));
    if (reading.history != before.history && !reading.history.empty()) {
      call.log(DRIFTD_LOG_WARN, "the state was " + reading.history,
               {{"serial", reading.head.serial}, {"lineage", reading.head.lineage}});
    }
    last_reading_.remember(now);
    call.checkpoint(request.kinds.empty() ? render(now, settings_.fingerprint) : std::string());
    return {false, settings_.poll.count()};
  }

  void read(sdk::Call& call, std::span<const sdk::Identity> ids) override {
    const Fetched fetched = source_->fetch(call, {});
    const Reading reading = read_fetched(fetched, last_reading_.value_or({}));
    lineage_.check(reading.head.lineage);
    Lookup lookup(call, settings_, reading, ids);
    lookup.run(fetched.state);
    for (const auto* id : lookup.missing()) not_found(call, *id);
  }

  sdk::Applied apply(sdk::Call& call, const sdk::Apply& request) override {
    const Fetched fetched = source_->fetch(call, {});
    const Reading reading = read_fetched(fetched, last_reading_.value_or({}));
    lineage_.check(reading.head.lineage);
    return answer_apply(fetched.state, reading, settings_, request);
  }

  sdk::Health health(sdk::Call& call) override {
    sdk::Health out;
    const std::int64_t begin = call.now_ns();
    try {
      Head head = peek(source_->probe(call).beginning);
      if (head.lineage.empty()) head.lineage = lineage_.newest();
      if (head.lineage.empty() && !has_none_) {
        out.state = DRIFTD_HEALTH_UNKNOWN;
        out.reason = "no lineage in the first bytes of the state; the next refresh looks further";
      }
      if (head.terraform_version.empty()) head.terraform_version = last_reading_.value_or({}).head.terraform_version;
      out.system_identity = head.lineage;
      out.server_version = head.terraform_version;
      lineage_.on_health(head.lineage);
    } catch (const sdk::Failure& failure) {
      out.state = failure.code == DRIFTD_UNAVAILABLE ? DRIFTD_HEALTH_DOWN : DRIFTD_HEALTH_DEGRADED;
      out.reason = failure.what();
    }
    out.latency_us = (call.now_ns() - begin) / 1000;
    return out;
  }

  sdk::Discovery discover(sdk::Call& call, const sdk::Discoverer& to) override {
    return discovery_.run(call, to, *source_, settings_, lineage_);
  }

  void watch(sdk::Call& call, const std::string&) override {
    // A hint is enough: the refresh that it starts reads a consistent state and knows what is missing from it.
    try {
      source_->watch(call, [&call] { call.bookmark({}); });
    } catch (const sdk::Failure& failure) {
      if (failure.code != DRIFTD_CANCELLED) throw;  // being asked to stop is no failure of a watch
    }
  }

  const Settings& settings() const { return settings_; }

 private:
  /// Returns the reading of a state that did not change since the cursor was made.
  static Reading again(const Cursor& known, const Fetched& fetched, sdk::Call& call) {
    Reading out;
    out.head = known.head;
    out.history = known.history;
    out.sent_ns = fetched.sent_ns != 0 ? fetched.sent_ns : call.started_ns();
    return out;
  }

  const Settings settings_;
  const std::unique_ptr<Source> source_;
  LastReading last_reading_;
  common::IdentityGuard lineage_{"another state lies here (lineage"};  ///< formats v1 and v2 may have none
  std::atomic<bool> has_none_{false};                                  ///< the last refresh found no lineage
  DiscoveryRun discovery_;
};

/// Returns the URL that a state is read from; empty if its source does not use HTTP or always uses TLS.
std::string url_of(const nlohmann::json& backend) {
  const std::string type = backend.value("type", "");
  if (type == "http") return backend.value("address", "");
  if (type == "consul") return backend.value("scheme", "http") + "://" + backend.value("address", "127.0.0.1:8500");
  if (type == "kubernetes") return backend.value("host", "");
  if (type == "s3")
    return backend.value("endpoints", nlohmann::json::object()).value("s3", backend.value("endpoint", ""));
  return {};
}

std::unique_ptr<sdk::Instance> open(sdk::Call& call, std::string_view, std::string_view text) {
  Settings settings = parse_settings(text);
  auto out = std::make_unique<TerraformInstance>(std::move(settings));
  const std::string url = url_of(out->settings().backend), host = common::plain_http_host(url);
  if (!common::is_local_host(host)) {
    common::warn_of_plain_transport(call, "the state, the secrets in it and the login for it", common::shown_url(url),
                                    "use https");
  }
  return out;
}

const sdk::Plugin& plugin() {
  static const sdk::Plugin kPlugin = [] {
    const auto schema = nlohmann::json::parse(driftd_schema_json);
    sdk::Plugin out;
    for (const auto& [kind, document] : schema.at("kinds").items()) out.schemas[kind] = document.dump();
    out.schemas["settings"] = schema.at("settings").dump();
    const nlohmann::json watch = {{"id", DRIFTD_EXT_WATCH}, {"revision", DRIFTD_EXT_WATCH_REVISION}};
    const nlohmann::json discover = {{"id", DRIFTD_EXT_DISCOVER}, {"revision", DRIFTD_EXT_DISCOVER_REVISION}};
    const nlohmann::json apply = {{"id", DRIFTD_EXT_APPLY}, {"revision", DRIFTD_EXT_APPLY_REVISION}};
    out.describe = nlohmann::json{{"id", "terraform"},
                                  {"version", "0.1.0"},
                                  {"types", {"terraform", "tfstate", "opentofu"}},
                                  {"kinds", kKinds},
                                  {"extensions", {watch, discover, apply}},
                                  {"concurrency", 2},
                                  {"metrics", nlohmann::json::array()},
                                  {"free_form", schema.at("free_form")}}
                       .dump();
    out.has_watch = out.has_discover = out.has_apply = true;
    out.open = &open;
    return out;
  }();
  return kPlugin;
}

}  // namespace
}  // namespace driftd::terraform

DRIFTD_PROVIDER(driftd::terraform::plugin)
