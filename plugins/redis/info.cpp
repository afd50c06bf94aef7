// SPDX-License-Identifier: Apache-2.0
#include "redis/info.hpp"

#include <cstdlib>
#include <sstream>

namespace driftd::redis {

Info parse_info(const std::string& text) {
  Info out;
  std::istringstream in(text);
  std::string line;
  while (std::getline(in, line)) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    const auto colon = line.find(':');
    if (line.empty() || line.front() == '#' || colon == std::string::npos) continue;
    out[line.substr(0, colon)] = line.substr(colon + 1);
  }
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
  // a fork says in redis_version which Redis it is compatible with: the same for all of its releases
  const std::string own = get(info, product_of(info) + "_version");
  return own.empty() ? get(info, "redis_version") : own;
}

std::string primary_of(const Info& info) {
  const std::string host = get(info, "master_host");
  if (host.empty()) return host;
  return (host.find(':') == std::string::npos ? host : "[" + host + "]") + ":" + get(info, "master_port");
}

std::string gate(const Info& info, const std::string& scope) {
  if (std::atoi(get(info, "redis_version").c_str()) < 7 || role_of(info) == "sentinel") return {};
  std::string out = "v2;" + get(info, "run_id") + ";" + role_of(info) + ";" + primary_of(info) + ";" +
                    get(info, "master_link_status") + ";" + get(info, "loading") + ";" + scope;
  for (const char* command : {"config|set", "config|rewrite", "config|resetstat", "acl|setuser", "acl|deluser",
                              "acl|load", "module|load", "module|loadex", "module|unload", "replicaof", "slaveof"}) {
    // the time that the calls took is in it too: a RESETSTAT and as many calls again hardly take the same microseconds
    out += ";" + get(info, std::string("cmdstat_") + command);
  }
  return out;
}

long long commands_processed(const Info& info) { return std::atoll(get(info, "total_commands_processed").c_str()); }

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
    if (key.rfind("master", 0) != 0 || value.rfind("name=", 0) != 0) continue;
    const auto status = value.find(",status=");
    const std::string word = value.substr(status + 8, value.find(',', status + 1) - status - 8);
    if (word != "ok") amiss("the Sentinel sees " + value.substr(5, value.find(',') - 5) + " as " + word);
  }
  return out;
}

}  // namespace driftd::redis
