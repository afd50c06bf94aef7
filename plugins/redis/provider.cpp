// SPDX-License-Identifier: Apache-2.0
#include "driftd/provider.hpp"

#include <algorithm>
#include <mutex>
#include <nlohmann/json.hpp>

#include "driftd_schema_json.hpp"
#include "redis/client.hpp"
#include "redis/mapping.hpp"

namespace driftd::redis {
namespace {

constexpr std::chrono::milliseconds kHealthMost{900};

class RedisInstance final : public sdk::Instance {
 public:
  explicit RedisInstance(Settings settings) : settings_(std::move(settings)) {}

  sdk::RefreshResult refresh(sdk::Call& call, const sdk::Refresh& request) override {
    auto client = take(call);
    const Info info = read_info(call, *client);
    const std::string now = gate(info, settings_.scope.text());
    if (!request.full && !now.empty() && request.cursor == now) {
      park(std::move(client));
      return {true, 0};
    }
    bool whole = true;
    whole &= part(call, request, "server", [&] { return emit_server(call, *client, info, &settings_.scope); });
    whole &= part(call, request, "acl_user", [&] { return emit_acl(call, *client, nullptr, &settings_.scope); });
    whole &= part(call, request, "replication",
                  [&] { return emit_one(call, replication_record(info), &settings_.scope); });
    // A gate that was read before the rest vouches for it: a change in between moves it.
    call.checkpoint(whole ? now : std::string());
    park(std::move(client));
    return {};
  }

  void read(sdk::Call& call, std::span<const sdk::Identity> ids) override {
    auto client = take(call);
    const Info info = read_info(call, *client);
    for (const auto& id : ids) {
      if (id.kind == "server" && id.id == "server") {
        emit_server(call, *client, info, nullptr);
      } else if (id.kind == "replication" && id.id == "replication") {
        emit_one(call, replication_record(info), nullptr);
      } else if (id.kind != "acl_user" || emit_acl(call, *client, &id.id, nullptr) == 0) {
        not_found(call, id);
      }
    }
    park(std::move(client));
  }

  sdk::Health health(sdk::Call& call) override {
    const auto begin = std::chrono::steady_clock::now();
    sdk::Health out;
    try {
      const auto client = Client::connect(call, settings_, kHealthMost);  // its own: a refresh may be blocked
      const Reply info = client->command(call, {"INFO"}, {}, "+info");
      out = health_of(parse_info(info.text));
    } catch (const sdk::Failure& failure) {
      const bool reached = failure.code == DRIFTD_DENIED || failure.code == DRIFTD_UNAUTHENTICATED;
      out.state = reached ? DRIFTD_HEALTH_DEGRADED : DRIFTD_HEALTH_DOWN;
      out.reason = failure.what();
    }
    const auto took = std::chrono::steady_clock::now() - begin;
    out.latency_us = std::chrono::duration_cast<std::chrono::microseconds>(took).count();
    return out;
  }

 private:
  /// Runs one kind; a failure that concerns only this kind is told and the others go on.
  template <class F>
  bool part(sdk::Call& call, const sdk::Refresh& request, const char* kind, F emit) {
    if (!request.wants(kind) || !settings_.scope.wants_kind(kind)) return true;
    try {
      call.complete(kind, emit());
      return true;
    } catch (const sdk::Failure& failure) {
      if (failure.code != DRIFTD_DENIED && failure.code != DRIFTD_UNSUPPORTED) throw;
      call.diag({failure.code, kind, {}, {}, failure.what(), failure.right, 0});
      return false;
    }
  }

  Info read_info(sdk::Call& call, Client& client) {
    return parse_info(client.command(call, {"INFO", "all"}, {}, "+info").text);
  }

  /// `scope`: only what is in it; read() asks without.
  std::uint64_t emit_one(sdk::Call& call, sdk::Record record, const sdk::Scope* scope) {
    if (scope != nullptr && !scope->wants(record.kind, record.id)) return 0;
    call.emit(record);
    return 1;
  }

  std::uint64_t emit_server(sdk::Call& call, Client& client, const Info& info, const sdk::Scope* scope) {
    const std::int64_t sent = call.now_ns();
    const Reply answer = client.command(call, {"CONFIG", "GET", "*"}, "server", "+config|get");
    std::map<std::string, std::string> config;
    for (std::size_t i = 0; i + 1 < answer.list.size(); i += 2) config[answer.list[i].text] = answer.list[i + 1].text;
    sdk::Record record = server_record(info, config, modules(call, client));
    record.observed_ns = sent;
    return emit_one(call, std::move(record), scope);
  }

  std::optional<std::vector<std::string>> modules(sdk::Call& call, Client& client) {
    try {
      std::vector<std::string> out;
      const Reply answer = client.command(call, {"MODULE", "LIST"}, "server", "+module|list");
      for (const auto& module : answer.list) {
        if (module.list.size() > 1) out.push_back(module.list[1].text);
      }
      std::sort(out.begin(), out.end());
      return out;
    } catch (const sdk::Failure& failure) {
      if (failure.code != DRIFTD_DENIED && failure.code != DRIFTD_UNSUPPORTED) throw;
      return std::nullopt;
    }
  }

  /// All users, or the one named.
  std::uint64_t emit_acl(sdk::Call& call, Client& client, const std::string* only, const sdk::Scope* scope) {
    const std::int64_t sent = call.now_ns();
    const Reply answer = client.command(call, {"ACL", "LIST"}, "acl_user", "+acl|list");
    std::uint64_t count = 0;
    for (const auto& line : answer.list) {
      sdk::Record record = acl_record(line.text);
      if (only != nullptr && record.id != *only) continue;
      record.observed_ns = sent;
      count += emit_one(call, std::move(record), scope);
    }
    return count;
  }

  /// The parked connection, if it still lives; else a new one. A broken one is simply not parked again.
  std::unique_ptr<Client> take(sdk::Call& call) {
    std::unique_ptr<Client> client;
    {
      const std::lock_guard lock(mutex_);
      client = std::move(parked_);
    }
    if (client != nullptr) {
      try {
        client->command(call, {"PING"}, {}, "+ping");
        return client;
      } catch (const sdk::Failure& failure) {
        if (failure.code == DRIFTD_CANCELLED || failure.code == DRIFTD_DEADLINE) throw;
      }
    }
    return Client::connect(call, settings_, settings_.call);
  }

  void park(std::unique_ptr<Client> client) {
    const std::lock_guard lock(mutex_);
    parked_ = std::move(client);
  }

  const Settings settings_;
  std::mutex mutex_;
  std::unique_ptr<Client> parked_;
};

std::unique_ptr<sdk::Instance> open(sdk::Call&, std::string_view, std::string_view settings) {
  return std::make_unique<RedisInstance>(parse_settings(settings));
}

const sdk::Plugin& plugin() {
  static const sdk::Plugin kPlugin = [] {
    const auto schema = nlohmann::json::parse(driftd_schema_json);
    sdk::Plugin out;
    nlohmann::json kinds = nlohmann::json::array();
    for (const auto& [kind, document] : schema.at("kinds").items()) {
      out.schemas[kind] = document.dump();
      kinds.push_back(kind);
    }
    out.schemas["settings"] = schema.at("settings").dump();
    out.describe = nlohmann::json{{"id", "redis"},        {"version", "0.1.0"},
                                  {"types", {"redis", "valkey"}}, {"kinds", kinds},
                                  {"extensions", nlohmann::json::array()}, {"concurrency", 2},
                                  {"metrics", nlohmann::json::array()}}
                       .dump();
    out.open = &open;
    return out;
  }();
  return kPlugin;
}

}  // namespace
}  // namespace driftd::redis

DRIFTD_PROVIDER(driftd::redis::plugin)
