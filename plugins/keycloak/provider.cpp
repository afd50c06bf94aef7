// SPDX-License-Identifier: Apache-2.0
#include "driftd/provider.hpp"

#include <algorithm>
#include <atomic>
#include <nlohmann/json.hpp>

#include "common/missed_changes.hpp"
#include "common/plain_transport.hpp"
#include "common/wait_until.hpp"
#include "driftd_schema_json.hpp"
#include "keycloak/apply.hpp"
#include "keycloak/http_api.hpp"
#include "keycloak/names.hpp"
#include "keycloak/sweep.hpp"
#include "keycloak/watcher.hpp"

namespace driftd::keycloak {
namespace {

using Steady = EventFeed::Steady;

constexpr std::chrono::milliseconds kHealthMost{900};

bool is_kind(const std::string& kind) { return std::find(kKinds.begin(), kKinds.end(), kind) != kKinds.end(); }

/// One Keycloak. Any number of calls at once; the admin events are followed by `watch`, or by `refresh` where no watch
/// runs.
class KeycloakInstance final : public sdk::Instance {
 public:
  explicit KeycloakInstance(Settings settings)
      : settings_(std::move(settings)),
        api_(settings_),
        feed_(cursor_scope(settings_), settings_.event_overlap) {}

  sdk::RefreshResult refresh(sdk::Call& call, const sdk::Refresh& request) override;
  void read(sdk::Call& call, std::span<const sdk::Identity> ids) override;
  void watch(sdk::Call& call, const std::string& cursor) override;
  sdk::Health health(sdk::Call& call) override;
  sdk::Applied apply(sdk::Call& call, const sdk::Apply& request) override {
    static const AttributeRules kRules(nlohmann::json::parse(driftd_schema_json).at("kinds"));
    return Applier(call, api_, settings_, index_, kRules, applied_).apply(request);
  }

 private:
  /// Returns true if nothing can have changed since the cursor. Sets `why` if everything is listed for a reason that
  /// belongs into the log.
  bool is_unchanged(sdk::Call& call, const std::string& cursor, std::string& why);
  /// Asks for events where no watch does. Returns true if none concerns a resource.
  bool nothing_happened(sdk::Call& call, std::string& why);
  /// Returns true if a list of the blind realms is due.
  bool blind_list_due() const;
  std::vector<std::string> wanted_kinds(const sdk::Refresh& request) const;

  const Settings settings_;
  HttpApi api_;
  Index index_;
  EventFeed feed_;
  common::MissedChanges missed_changes_;
  common::AppliedRequests applied_;  ///< only used by apply(), of which the host never runs two at once
  std::atomic<int> sweeps_{0};
  std::mutex mutex_;        ///< guards `blind_text_`
  std::string blind_text_;  ///< as of the last full list
};

std::vector<std::string> KeycloakInstance::wanted_kinds(const sdk::Refresh& request) const {
  std::vector<std::string> out;
  for (const auto kind : kKinds) {
    if (request.wants(kind) && settings_.scope.wants_kind(kind)) out.emplace_back(kind);
  }
  return out;
}

bool KeycloakInstance::blind_list_due() const {
  return !feed_.realms(true).empty() && feed_.list_age(Steady::now()) >= settings_.sweep_interval;
}

bool KeycloakInstance::nothing_happened(sdk::Call& call, std::string& why) {
  for (const auto& realm : feed_.realms(false)) {
    const auto place = feed_.place(realm);
    if (!place) continue;
    const Poll poll = EventPoller(call, api_, settings_).poll(realm, *place);
    if (!poll.lost.empty()) why = "realm " + realm + ": " + poll.lost;
    if (!poll.lost.empty() || !poll.touches.empty()) return false;
    feed_.commit(realm, poll.events, poll.server_ms, false);
  }
  return true;
}

bool KeycloakInstance::is_unchanged(sdk::Call& call, const std::string& cursor, std::string& why) {
  if (cursor.empty()) return false;
  // The feed may be further than the caller's cursor, but a foreign one says nothing about what the caller has.
  EventFeed other(cursor_scope(settings_), settings_.event_overlap);
  if (!(feed_.ready() ? other : feed_).restore(cursor)) return false;
  why = feed_.list_reason();
  if (!why.empty() || blind_list_due()) return false;
  // Without any realm whose events are read nothing would ever be asked.
  if (feed_.realms(false).empty()) return feed_.list_age(Steady::now()) < settings_.sweep_interval;
  if (feed_.is_current(Steady::now(), 2 * settings_.poll_interval)) return true;
  return nothing_happened(call, why);
}

sdk::RefreshResult KeycloakInstance::refresh(sdk::Call& call, const sdk::Refresh& request) {
  if (!settings_.detection) {
    for (const auto kind : kKinds) {
      call.diag({DRIFTD_UNSUPPORTED,
                 std::string(kind),
                 {},
                 {},
                 "drift detection is off: settings.drift_detection.enabled is false",
                 {},
                 0});
    }
    return {};
  }
  std::string why;
  if (!request.full && is_unchanged(call, request.cursor, why)) return {true, 0};
  if (!why.empty()) call.log(DRIFTD_LOG_WARN, "a full list is read: " + why);
  const auto began = Steady::now();
  const std::string stamp = feed_.stamp();
  Sweep sweep(call, api_, settings_, index_);
  sweep.begin(feed_);
  if (!sweep.emit(wanted_kinds(request))) return {};
  const std::string blind = sweep.blind_text();
  {
    const std::lock_guard lock(mutex_);
    blind_text_ = blind;
  }
  if (!blind.empty()) call.log(DRIFTD_LOG_WARN, blind);
  const bool all = request.kinds.empty();
  if (all && sweep.whole() && missed_changes_.detect(stamp, sweep.digest()))
    call.log(DRIFTD_LOG_WARN, "a full list found a change that no admin event had shown");
  call.metric("cursor_missed", missed_changes_.count());
  call.metric("full_lists", ++sweeps_);
  call.metric("blind_realms", static_cast<double>(sweep.blind_realms()));
  if (all) feed_.start(sweep.starts(), began);
  call.checkpoint(all && sweep.whole() ? feed_.cursor() : std::string());
  return {};
}

void KeycloakInstance::read(sdk::Call& call, std::span<const sdk::Identity> ids) {
  Reader reader(call, api_, settings_, index_);
  for (const auto& id : ids) {
    if (!is_kind(id.kind)) throw sdk::Failure(DRIFTD_INVALID, "no such kind: " + id.kind, id.kind);
    if (id.kind != "realm") {
      const auto found = reader.by_id(id.kind, id.id);
      if (found)
        call.emit(found->record);
      else
        not_found(call, id);
      continue;
    }
    const auto parts = parts_of(id.id);
    const auto view = parts.size() == 1 ? reader.realm(parts.front()) : std::nullopt;
    if (!view) {
      not_found(call, id);
      continue;
    }
    const auto place = feed_.place(view->name);
    RealmState state{view->events_enabled && settings_.use_events, place ? place->last_reconcile_event_ms() : 0};
    call.emit(reader.realm_record(*view, std::move(state)));
  }
}

void KeycloakInstance::watch(sdk::Call& call, const std::string&) {
  if (!settings_.detection || !settings_.use_events) {
    common::wait_until(call, Steady::time_point::max());
    return;
  }
  Watcher(call, api_, settings_, index_, feed_).run();
}

sdk::Health KeycloakInstance::health(sdk::Call& call) {
  sdk::Health out;
  const auto begin = Steady::now();
  try {
    const int status = api_.probe(call, kHealthMost);
    if (status < 200 || status >= 300) {
      out.state = status >= 500 ? DRIFTD_HEALTH_DOWN : DRIFTD_HEALTH_DEGRADED;
      out.reason =
          "GET " + settings_.url + "/realms/" + settings_.login.realm + ": HTTP status " + std::to_string(status);
    } else {
      const std::lock_guard lock(mutex_);
      if (!blind_text_.empty()) out.state = DRIFTD_HEALTH_DEGRADED;
      out.reason = blind_text_;
    }
  } catch (const sdk::Failure& failure) {
    if (failure.code == DRIFTD_CANCELLED || failure.code == DRIFTD_INTERNAL) throw;
    out.state = DRIFTD_HEALTH_DOWN;
    out.reason = failure.what();
  }
  out.latency_us = std::chrono::duration_cast<std::chrono::microseconds>(Steady::now() - begin).count();
  return out;
}

std::unique_ptr<sdk::Instance> open(sdk::Call& call, std::string_view, std::string_view text) {
  Settings settings = parse_settings(text);
  const std::string host = common::plain_http_host(settings.url);
  if (!host.empty() && !common::is_local_host(host)) {
    common::warn_of_plain_transport(call, "the login, its tokens and the secrets of clients", settings.url,
                                    "use https in settings.url");
  }
  return std::make_unique<KeycloakInstance>(std::move(settings));
}

const sdk::Plugin& plugin() {
  static const sdk::Plugin kPlugin = [] {
    const auto schema = nlohmann::json::parse(driftd_schema_json);
    sdk::Plugin out;
    for (const auto& [kind, document] : schema.at("kinds").items()) out.schemas[kind] = document.dump();
    out.schemas["settings"] = schema.at("settings").dump();
    const nlohmann::json metrics = {{{"name", "cursor_missed"}, {"unit", "sweeps"}},
                                    {{"name", "full_lists"}, {"unit", "sweeps"}},
                                    {{"name", "blind_realms"}, {"unit", "realms"}}};
    out.describe = nlohmann::json{
        {"id", "keycloak"},
        {"version", "0.1.0"},
        {"types", {"keycloak", "rhbk"}},
        {"kinds", kKinds},
        {"extensions", {{{"id", "driftd.watch"}, {"revision", 1}}, {{"id", "driftd.apply"}, {"revision", 1}}}},
        {"concurrency", 4},
        {"metrics",
         metrics}}.dump();
    out.has_watch = out.has_apply = true;
    out.open = &open;
    return out;
  }();
  return kPlugin;
}

}  // namespace
}  // namespace driftd::keycloak

DRIFTD_PROVIDER(driftd::keycloak::plugin)
