// SPDX-License-Identifier: Apache-2.0
#include "driftd/provider.hpp"

#include <array>
#include <functional>
#include <nlohmann/json.hpp>

#include "common/apply_steps.hpp"
#include "common/plain_transport.hpp"
#include "driftd_schema_json.hpp"
#include "redis/apply.hpp"
#include "redis/mapping.hpp"
#include "redis/missed_changes.hpp"
#include "redis/reader.hpp"
#include "redis/watch.hpp"

namespace driftd::redis {
namespace {

constexpr std::chrono::milliseconds kHealthMost{900};
constexpr std::array kKinds{"server", "acl_user", "replication", "cluster", "sentinel_master"};

/// The directives that the schema names, `config.maxmemory` → `maxmemory`.
const std::vector<std::string>& known_directives() {
  static const std::vector<std::string> kKnown = [] {
    std::vector<std::string> out;
    const auto schema = nlohmann::json::parse(driftd_schema_json);
    for (const auto& [path, rule] : schema.at("kinds").at("server").at("attributes").items()) {
      if (path.starts_with("config.") && path.find_first_of("*.", 7) == std::string::npos)
        out.push_back(path.substr(7));
    }
    return out;
  }();
  return kKnown;
}

class RedisInstance final : public sdk::Instance {
 public:
  explicit RedisInstance(Settings settings) : settings_(std::move(settings)) {}

  sdk::RefreshResult refresh(sdk::Call& call, const sdk::Refresh& request) override {
    Deployment deployment(call, settings_, &pool_, settings_.call);
    Reader reader(call, deployment, settings_, known_directives());
    const bool fell = missed_changes_.counters_fell(get(deployment.info(), "run_id"), counters_of(deployment.info()));
    const std::string now = reader.change_stamp();  // read before the rest, so that a change in between alters it
    if (!request.full && !fell && !now.empty() && request.cursor == now) return {true, 0};
    bool whole = true;
    std::size_t digest = 0;
    for (const char* kind : kKinds) {
      if (!request.wants(kind) || !settings_.scope.wants_kind(kind)) continue;
      if (!emit_kind(call, reader, kind, whole, digest)) return {};
    }
    if (whole && request.kinds.empty() && missed_changes_.detect(now, digest)) {
      call.log(DRIFTD_LOG_WARN, "a full sweep found a change that the counters of INFO had not shown");
    }
    call.metric("cursor_missed", missed_changes_.count());
    call.checkpoint(whole && request.kinds.empty() ? now : std::string());
    return {};
  }

  void read(sdk::Call& call, std::span<const sdk::Identity> ids) override {
    Deployment deployment(call, settings_, &pool_, settings_.call);
    Reader reader(call, deployment, settings_, known_directives());
    std::map<std::string, Listing> lists;
    for (const auto& id : ids) {
      if (std::find(kKinds.begin(), kKinds.end(), id.kind) == kKinds.end()) {
        throw sdk::Failure(DRIFTD_INVALID, "no such kind: " + id.kind, id.kind);
      }
      if (lists.count(id.kind) == 0) lists[id.kind] = reader.list(id.kind);
      answer(call, id, lists[id.kind]);
    }
  }

  sdk::Health health(sdk::Call& call) override {
    const auto begin = std::chrono::steady_clock::now();
    sdk::Health out;
    try {
      out = probe(call);
    } catch (const sdk::Failure& failure) {
      const bool reached = failure.code == DRIFTD_DENIED || failure.code == DRIFTD_UNAUTHENTICATED;
      out.state = reached ? DRIFTD_HEALTH_DEGRADED : DRIFTD_HEALTH_DOWN;
      out.reason = failure.what();
    }
    const auto took = std::chrono::steady_clock::now() - begin;
    out.latency_us = std::chrono::duration_cast<std::chrono::microseconds>(took).count();
    return out;
  }

  sdk::Applied apply(sdk::Call& call, const sdk::Apply& request) override {
    if (std::find(kKinds.begin(), kKinds.end(), request.id.kind) == kKinds.end())
      throw sdk::Failure(DRIFTD_INVALID, "no such kind: " + request.id.kind, request.id.kind);
    if (!request.dry_run) {
      if (auto done = applied_.find(request)) return *done;
    }
    Deployment deployment(call, settings_, nullptr, settings_.call);
    sdk::Applied out = redis::apply(call, deployment, settings_, known_directives(), request);
    if (!request.dry_run && out.outcome == DRIFTD_APPLY_SUCCESS) applied_.remember(request, out);
    return out;
  }

  void watch(sdk::Call& call, const std::string&) override { watch_sentinels(call, settings_); }

  std::vector<sdk::Verdict> diff(const sdk::Identity& id, std::span<const sdk::Change> changes) override {
    std::vector<std::pair<std::uint32_t, std::string>> found;
    if (id.kind == "acl_user") {
      std::vector<AclChange> given;
      for (const auto& change : changes) given.push_back({change.index, change.path});
      found = equivalent_acl_changes(given);
    } else if (id.kind == "replication") {
      std::vector<HistoryChange> given;
      for (const auto& change : changes)
        given.push_back({change.index, change.path, change.old_value, change.new_value});
      found = equivalent_history_changes(given);
    }
    std::vector<sdk::Verdict> out;
    for (auto& [index, reason] : found) out.push_back({index, DRIFTD_VERDICT_EQUIVALENT, std::move(reason)});
    return out;
  }

 private:
  /// Names what is too long even for a new user, whose baseline does not hold it yet.
  static void tell_unread(sdk::Call& call, const sdk::Record& record) {
    for (const auto& unread : record.unread) {
      if (unread.code != DRIFTD_BUDGET) continue;
      call.diag({DRIFTD_BUDGET,
                 record.kind,
                 record.id,
                 unread.path,
                 record.id + ": " + unread.path + ": " + unread.reason,
                 {},
                 0});
    }
  }
  /// Emits what is in scope, then COMPLETE or the reasons why it is not complete. Returns false if the host asks to
  /// stop.
  bool emit_kind(sdk::Call& call, Reader& reader, const char* kind, bool& whole, std::size_t& digest) {
    const Listing listing = reader.list(kind);
    std::uint64_t count = 0;
    for (const auto& record : listing.records) {
      if (!settings_.scope.wants(record.kind, record.id)) continue;
      if (!call.emit(record)) return false;
      tell_unread(call, record);
      digest = digest * 31 + std::hash<std::string>()(record.kind + "/" + record.id + record.body);
      ++count;
    }
    for (const auto& failure : listing.missing) {
      call.diag({failure.code, kind, {}, {}, failure.what(), failure.right, 0});
    }
    whole = whole && listing.missing.empty();
    return !listing.missing.empty() || call.complete(kind, count);
  }

  static void answer(sdk::Call& call, const sdk::Identity& id, const Listing& listing) {
    for (const auto& record : listing.records) {
      if (record.id == id.id) return static_cast<void>(call.emit(record));
    }
    if (listing.missing.empty()) return not_found(call, id);
    throw sdk::Failure(listing.missing.front());  // not seen is not gone
  }

  /// On connections of its own: a refresh may be blocked.
  sdk::Health probe(sdk::Call& call) const {
    const auto share = kHealthMost / static_cast<int>(settings_.addresses.size() + (settings_.sentinel ? 1 : 0));
    Deployment deployment(call, settings_, nullptr, share);
    sdk::Health out = health_of(deployment.info());
    const auto degraded = [&](const std::string& reason) {
      out.state = DRIFTD_HEALTH_DEGRADED;
      out.reason += (out.reason.empty() ? "" : "; ") + reason;
    };
    for (const auto& conflict : primary_conflicts(deployment.views()))
      degraded("the Sentinels do not agree on " + conflict);
    for (const auto& failure : deployment.sentinel_failures()) degraded(failure.what());
    if (get(deployment.info(), "cluster_enabled") == "1" && cluster_down(call, deployment))
      degraded("cluster_state is fail");
    return out;
  }
  static bool cluster_down(sdk::Call& call, Deployment& deployment) {
    try {
      const Reply state = deployment.client().command(call, {"CLUSTER", "INFO"}, "cluster", "+cluster|info");
      return get(parse_info(state.text), "cluster_state") == "fail";
    } catch (const sdk::Failure& failure) {
      if (failure.code != DRIFTD_DENIED && failure.code != DRIFTD_UNSUPPORTED) throw;
      return false;  // the refresh names the right
    }
  }

  const Settings settings_;
  Pool pool_;
  MissedChanges missed_changes_;
  common::AppliedRequests applied_;  ///< only used by apply, which is never called twice at once
};

std::unique_ptr<sdk::Instance> open(sdk::Call& call, std::string_view, std::string_view text) {
  Settings settings = parse_settings(text);
  const bool logs_in =
      !settings.login.password_token.empty() || (settings.sentinel && !settings.sentinel->login.password_token.empty());
  for (const auto& address : settings.addresses) {
    if (settings.tls || !logs_in || !address.socket.empty() || common::is_local_host(address.host)) continue;
    common::warn_of_plain_transport(call, "the password and all that is read", address.text(), "set settings.tls");
    break;
  }
  return std::make_unique<RedisInstance>(std::move(settings));
}

const sdk::Plugin& plugin() {
  static const sdk::Plugin kPlugin = [] {
    const auto schema = nlohmann::json::parse(driftd_schema_json);
    sdk::Plugin out;
    for (const auto& [kind, document] : schema.at("kinds").items()) out.schemas[kind] = document.dump();
    out.schemas["settings"] = schema.at("settings").dump();
    out.describe =
        nlohmann::json{
            {"id", "redis"},
            {"version", "0.2.0"},
            {"types", {"redis", "valkey"}},
            {"kinds", kKinds},
            {"complete", kKinds},
            {"extensions", {{{"id", "driftd.watch"}, {"revision", 1}}, {{"id", "driftd.apply"}, {"revision", 1}}}},
            {"concurrency", 2},
            {"diff", true},
            {"metrics", {{{"name", "cursor_missed"}, {"unit", "sweeps"}}}}}
            .dump();
    out.has_watch = out.has_diff = out.has_apply = true;
    out.open = &open;
    return out;
  }();
  return kPlugin;
}

}  // namespace
}  // namespace driftd::redis

DRIFTD_PROVIDER(driftd::redis::plugin)
