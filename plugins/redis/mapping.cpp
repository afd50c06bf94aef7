// SPDX-License-Identifier: Apache-2.0
#include "redis/mapping.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/bounded_json.hpp"
#include "common/utf8_text.hpp"

namespace driftd::redis {
namespace {

using nlohmann::json;

/// `config.maxmemory`, or `config["search.token"]`.
std::string member_path(const std::string& name) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
  if (!name.empty() && name.find_first_not_of(kPlain) == std::string::npos) return "config." + name;
  return "config[" + json(name).dump() + "]";
}

std::string config_path(const std::string& directive) { return member_path(common::utf8_text(directive)); }

json picked(const Info& info, std::initializer_list<const char*> names) {
  json out = json::object();
  for (const char* name : names) {
    if (const std::string value = get(info, name); !value.empty()) out[name] = value;
  }
  return out;
}

void mark_unasked(const Config& config, const std::vector<std::string>& asked, const std::vector<std::string>& known,
                  sdk::Record& out) {
  for (const auto& name : known) {
    if (config.count(name) > 0 || matches_pattern(name, asked)) continue;
    out.unread.push_back({config_path(name), DRIFTD_UNSUPPORTED, "settings.config does not ask for it"});
  }
}

/// Directives that exceed the host's limits become unread; the others are still judged.
void fit(json& config, sdk::Record& out) {
  constexpr std::size_t kBeside = 64u << 10;  // version, modules
  std::vector<std::string> left_out;
  common::fit_members(config, common::kMaxBody - kBeside, left_out);
  for (const auto& name : left_out) {
    const std::string path = member_path(name);
    out.unread.push_back({path, DRIFTD_BUDGET, "it is too long to be read: the record would be larger than 4 MiB"});
    std::erase(out.sensitive, path);
  }
}

}  // namespace

sdk::Record server_record(const Info& info, const Config& config,
                          const std::optional<std::vector<std::string>>& modules, const std::vector<std::string>& asked,
                          const std::vector<std::string>& known) {
  const bool sentinel = role_of(info) == "sentinel";
  json body = {{"version", version_of(info)}, {"product", product_of(info)}, {"mode", mode_of(info)}};
  json directives = json::parse(config_object(config));
  if (modules) body["modules"] = *modules;
  if (const std::string kept = persistence(config); !kept.empty()) body["persistence"] = kept;
  sdk::Record out;
  out.kind = "server";
  out.id = "server";
  out.schema_revision = 3;
  json status = picked(info, {"loading", "uptime_in_seconds", "connected_clients", "rdb_last_bgsave_status",
                              "aof_last_write_status", "run_id"});
  status["role"] = role_of(info);
  out.status = common::json_text(status);
  out.metadata["config_file"] = get(info, "config_file");
  for (const auto& [name, value] : config) {
    if (secret_directive(name)) out.sensitive.push_back(config_path(name));
  }
  fit(directives, out);
  body["config"] = std::move(directives);
  out.body = common::json_text(body);
  if (!sentinel) mark_unasked(config, asked, known, out);
  if (!modules && !sentinel) {
    out.unread.push_back({"modules", DRIFTD_DENIED, "MODULE LIST is not allowed; grant +module|list"});
  }
  return out;
}

sdk::Record replication_record(const Info& info, const std::string& endpoint) {
  json body = {{"role", role_of(info)}};
  json status = picked(info, {"master_link_status", "master_replid", "master_replid2", "master_repl_offset",
                              "slave_repl_offset", "master_last_io_seconds_ago", "slave_priority"});
  status["connected_replicas"] = get(info, "connected_slaves");
  sdk::Record out;
  out.kind = "replication";
  out.id = "replication";
  out.schema_revision = 2;
  if (!endpoint.empty()) body["endpoint"] = endpoint;
  if (role_of(info) == "replica") {
    body["primary"] = primary_of(info);
    if (get(info, "master_link_status") == "up" && get(info, "loading") != "1") {
      body["history"] = {{"id", get(info, "master_replid")}, {"previous", get(info, "master_replid2")}};
    } else {
      out.unread.push_back({"history.**", DRIFTD_UNAVAILABLE, "the link to the primary is not up"});
    }
  }
  out.body = common::json_text(body);
  out.status = common::json_text(status);
  out.metadata["master_replid"] = get(info, "master_replid");
  return out;
}

std::vector<std::pair<std::uint32_t, std::string>> equivalent_history_changes(
    const std::vector<HistoryChange>& changes) {
  const auto find = [&](const char* path) {
    return std::find_if(changes.begin(), changes.end(), [&](const auto& c) { return c.path == path; });
  };
  const auto id = find("history.id"), previous = find("history.previous");
  std::vector<std::pair<std::uint32_t, std::string>> out;
  const std::string reason = "the same history goes on: the old replication id is the new one's predecessor";
  if (id != changes.end() && previous != changes.end() && !id->old_value.empty() &&
      id->old_value == previous->new_value) {
    out.emplace_back(id->index, reason);
  }
  if (previous != changes.end() && (id == changes.end() || !out.empty())) out.emplace_back(previous->index, reason);
  return out;
}

}  // namespace driftd::redis
