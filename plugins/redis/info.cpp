// SPDX-License-Identifier: Apache-2.0
#include "redis/info.hpp"

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace driftd::redis {

namespace {

constexpr const char* kBeforeReplicas[] = {"role",
                                           "master_host",
                                           "master_port",
                                           "master_link_status",
                                           "master_last_io_seconds_ago",
                                           "slave_repl_offset",
                                           "slave_priority",
                                           "connected_slaves"};
constexpr const char* kOfReplicas[] = {"master_host",        "master_port",
                                       "master_link_status", "master_last_io_seconds_ago",
                                       "slave_repl_offset",  "slave_priority"};
constexpr const char* kBehindReplicas[] = {"master_replid", "master_replid2", "master_repl_offset", "cluster_enabled"};

/// Calls take(key, value) for each line.
template <class Take>
void each_line(std::string_view text, const Take& take) {
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    const auto colon = line.find(':');
    if (line.empty() || line.front() == '#' || colon == std::string_view::npos) continue;
    take(std::string(line.substr(0, colon)), std::string(line.substr(colon + 1)));
  }
}

template <class Names>
bool is_one_of(const Names& names, const std::string& key) {
  return std::find(std::begin(names), std::end(names), key) != std::end(names);
}

}  // namespace

const std::array<const char*, 8> kInfoSections = {"server",      "clients",      "persistence", "stats",
                                                  "replication", "commandstats", "cluster",     "sentinel"};

Info parse_info(const std::string& text) {
  Info out, behind;
  const auto replication = std::min(text.find("# Replication"), text.size());
  const std::string_view all = text;
  each_line(all.substr(0, replication),
            [&](std::string key, std::string value) { out.emplace(std::move(key), std::move(value)); });
  each_line(all.substr(replication), [&](std::string key, std::string value) {
    const bool last = is_one_of(kBehindReplicas, key) || key.starts_with("cmdstat_");
    if (is_one_of(kBeforeReplicas, key))
      behind.emplace(std::move(key), std::move(value));
    else if (last)
      behind.insert_or_assign(std::move(key), std::move(value));
  });
  const bool replica = get(behind, "role") == "slave";
  for (const char* key : kOfReplicas) {  // a primary has none of these fields
    if (!replica) behind.erase(key);
  }
  out.merge(behind);
  return out;
}

std::string get(const Info& info, const std::string& key) {
  const auto found = info.find(key);
  return found == info.end() ? std::string() : found->second;
}

std::string mode_of(const Info& info) {
  const std::string mode = get(info, "redis_mode");
  return mode.empty() ? get(info, "server_mode") : mode;  // Valkey's name for it
}

std::string role_of(const Info& info) {
  if (mode_of(info) == "sentinel") return "sentinel";
  return get(info, "role") == "slave" ? "replica" : "primary";
}

std::string product_of(const Info& info) {
  const std::string name = get(info, "server_name");
  return name.empty() ? "redis" : name;
}

std::string version_of(const Info& info) {
  // A fork reports in redis_version the Redis version that it is compatible with, which is the same for all of its
  // releases.
  const std::string own = get(info, product_of(info) + "_version");
  return own.empty() ? get(info, "redis_version") : own;
}

std::string primary_of(const Info& info) {
  const std::string host = get(info, "master_host");
  if (host.empty()) return host;
  return (host.find(':') == std::string::npos ? host : "[" + host + "]") + ":" + get(info, "master_port");
}

std::string change_stamp(const Info& info, const std::string& scope) {
  if (std::atoi(get(info, "redis_version").c_str()) < 7 || role_of(info) == "sentinel") return {};
  const std::string run = get(info, "run_id");
  if (run.empty()) return {};  // a reset of its counters could not be detected
  std::string out = "v3;" + run + ";" + role_of(info) + ";" + primary_of(info) + ";" + get(info, "master_link_status") +
                    ";" + get(info, "loading") + ";" + get(info, "master_replid") + ";" + get(info, "master_replid2") +
                    ";" + scope;
  for (const char* command : {"config|set", "config|rewrite", "config|resetstat", "acl|setuser", "acl|deluser",
                              "acl|load", "module|load", "module|loadex", "module|unload", "replicaof", "slaveof"}) {
    // The stamp includes the time of the calls: after a RESETSTAT the same number of calls hardly takes the same
    // microseconds.
    out += ";" + get(info, std::string("cmdstat_") + command);
  }
  return out;
}

Counters counters_of(const Info& info) {
  constexpr std::string_view kCalls = "calls=";
  Counters out{{"", std::atoll(get(info, "total_commands_processed").c_str())}};
  for (auto at = info.lower_bound("cmdstat_"); at != info.end() && at->first.starts_with("cmdstat_"); ++at) {
    if (at->second.starts_with(kCalls)) out[at->first] = std::atoll(at->second.c_str() + kCalls.size());
  }
  return out;
}

sdk::Health health_of(const Info& info) {
  sdk::Health out;
  out.role = role_of(info);
  out.server_version = version_of(info);
  const auto amiss = [&](const std::string& reason) {
    out.state = DRIFTD_HEALTH_DEGRADED;
    out.reason += (out.reason.empty() ? "" : "; ") + reason;
  };
  if (get(info, "loading") == "1") amiss("loading its data set");
  if (out.role == "replica" && get(info, "master_link_status") != "up") {
    amiss("replication link to " + primary_of(info) + " is " + get(info, "master_link_status"));
  }
  if (get(info, "rdb_last_bgsave_status") == "err") amiss("the last background save failed");
  if (get(info, "aof_last_write_status") == "err") amiss("the last write to the append-only file failed");
  if (get(info, "sentinel_tilt") == "1") amiss("the Sentinel is in TILT mode");
  for (const auto& [key, value] : info) {
    if (out.role != "sentinel" || !key.starts_with("master") || value.rfind("name=", 0) != 0) continue;
    const auto status = value.find(",status=");
    if (status == std::string::npos) continue;
    const std::string word = value.substr(status + 8, value.find(',', status + 1) - status - 8);
    if (word != "ok") amiss("the Sentinel sees " + value.substr(5, value.find(',') - 5) + " as " + word);
  }
  return out;
}

}  // namespace driftd::redis
