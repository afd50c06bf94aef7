// SPDX-License-Identifier: Apache-2.0
#include "redis/mapping.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>

namespace driftd::redis {
namespace {

using nlohmann::json;

std::string get(const Info& info, const std::string& key) {
  const auto found = info.find(key);
  return found == info.end() ? std::string() : found->second;
}

/// `calls=12,usec=…` → `12`.
std::string calls(const Info& info, const std::string& command) {
  const std::string stats = get(info, "cmdstat_" + command);
  if (stats.rfind("calls=", 0) != 0) return "0";
  return stats.substr(6, stats.find(',') - 6);
}

std::string primary(const Info& info) {
  const std::string host = get(info, "master_host");
  return host.empty() ? host : host + ":" + get(info, "master_port");
}

std::string role(const Info& info) { return get(info, "role") == "slave" ? "replica" : "primary"; }

/// Redis 7 answers both the old and the new name of a setting; one of them is enough.
bool alias(const std::string& key, const std::map<std::string, std::string>& config) {
  const auto at = key.find("slave");
  if (at == std::string::npos) return false;
  const std::string modern = std::string(key).replace(at, 5, "replica");
  return config.count(modern) > 0;
}

std::vector<std::string> split(const std::string& line) {
  std::vector<std::string> out;
  std::istringstream in(line);
  std::string word;
  int depth = 0;
  while (in >> word) {  // a selector `(~k* +get)` stays one word
    if (depth > 0) {
      out.back() += " " + word;
    } else {
      out.push_back(word);
    }
    if (word.front() == '(') ++depth;
    if (word.back() == ')') --depth;
  }
  return out;
}

/// Rules about different commands commute, and Redis 7.0 lists them in another order after every start: sorted by the
/// command between two categories. What stands about one command keeps its order, and categories stay where they are.
std::string ordered(const std::string& commands) {
  std::vector<std::string> rules = split(commands);
  const auto is_category = [](const std::string& rule) {
    return rule.find('@') == 1 || rule == "allcommands" || rule == "nocommands";
  };
  const auto name = [](const std::string& rule) { return std::string_view(rule).substr(1, rule.find('|') - 1); };
  for (auto from = rules.begin(); from != rules.end();) {
    const auto to = std::find_if(from, rules.end(), is_category);
    std::stable_sort(from, to, [&](const auto& a, const auto& b) { return name(a) < name(b); });
    from = to == rules.end() ? to : to + 1;
  }
  std::string out;
  for (const auto& rule : rules) out += (out.empty() ? "" : " ") + rule;
  return out;
}

/// `(~k* +get -set)`: its patterns as they stand, then its commands in order.
std::string ordered_selector(const std::string& selector) {
  std::string patterns, commands;
  std::istringstream in(selector.substr(1, selector.size() - 2));
  for (std::string word; in >> word;) {
    const bool command = word.front() == '+' || word.front() == '-' || word == "allcommands" || word == "nocommands";
    std::string& to = command ? commands : patterns;
    to += (to.empty() ? "" : " ") + word;
  }
  return "(" + patterns + (patterns.empty() || commands.empty() ? "" : " ") + ordered(commands) + ")";
}

void take_rule(json& body, const std::string& word) {
  const char first = word.front();
  if (word == "on" || word == "off") {
    body["enabled"] = word == "on";
  } else if (first == '#') {
    body["passwords"].push_back(word.substr(1));
  } else if (first == '~' || first == '%' || word == "allkeys") {
    body["keys"].push_back(word == "allkeys" ? "~*" : word);
  } else if (first == '&' || word == "allchannels") {
    body["channels"].push_back(word == "allchannels" ? "&*" : word);
  } else if (first == '+' || first == '-') {
    std::string& commands = body["commands"].get_ref<std::string&>();
    commands += (commands.empty() ? "" : " ") + word;
  } else if (first == '(') {
    body["selectors"].push_back(ordered_selector(word));
  } else {
    body["flags"].push_back(word);
  }
}

}  // namespace

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

std::string gate(const Info& info, const std::string& scope) {
  if (std::atoi(get(info, "redis_version").c_str()) < 7) return {};
  std::string out = "v1;" + get(info, "run_id") + ";" + role(info) + ";" + primary(info) + ";" + scope;
  for (const char* command : {"config|set", "config|rewrite", "config|resetstat", "acl|setuser", "acl|deluser",
                              "acl|load", "module|load", "module|loadex", "module|unload", "replicaof", "slaveof"}) {
    out += ";" + calls(info, command);
  }
  return out;
}

sdk::Record server_record(const Info& info, const std::map<std::string, std::string>& config,
                          const std::optional<std::vector<std::string>>& modules) {
  json body = {{"version", get(info, "redis_version")}, {"mode", get(info, "redis_mode")}, {"config", json::object()}};
  for (const auto& [key, value] : config) {
    // Sentinel and failovers rewrite replicaof; the replication resource has it.
    if (key == "replicaof" || key == "slaveof" || alias(key, config)) continue;
    body["config"][key] = value;
  }
  if (modules) body["modules"] = *modules;
  const json status = {{"role", role(info)},
                       {"loading", get(info, "loading")},
                       {"uptime_in_seconds", get(info, "uptime_in_seconds")},
                       {"connected_clients", get(info, "connected_clients")},
                       {"rdb_last_bgsave_status", get(info, "rdb_last_bgsave_status")},
                       {"run_id", get(info, "run_id")}};
  sdk::Record out;
  out.kind = "server";
  out.id = "server";
  out.body = body.dump();
  out.status = status.dump();
  out.metadata["config_file"] = get(info, "config_file");
  if (!modules) {
    out.unread.push_back({"modules", DRIFTD_DENIED, "MODULE LIST is not allowed; grant +module|list"});
  }
  return out;
}

sdk::Record replication_record(const Info& info) {
  json body = {{"role", role(info)}};
  if (role(info) == "replica") body["primary"] = primary(info);
  const json status = {{"master_link_status", get(info, "master_link_status")},
                       {"connected_replicas", get(info, "connected_slaves")},
                       {"master_replid", get(info, "master_replid")},
                       {"master_repl_offset", get(info, "master_repl_offset")}};
  sdk::Record out;
  out.kind = "replication";
  out.id = "replication";
  out.body = body.dump();
  out.status = status.dump();
  return out;
}

sdk::Record acl_record(const std::string& line) {
  const auto words = split(line);
  if (words.size() < 2 || words[0] != "user") {
    throw sdk::Failure(DRIFTD_CORRUPT, "ACL LIST: expected 'user NAME …', found a line of another form", "acl_user");
  }
  json body = {{"enabled", false},          {"flags", json::array()},    {"commands", ""},
               {"keys", json::array()},     {"channels", json::array()}, {"selectors", json::array()},
               {"passwords", json::array()}};
  for (std::size_t i = 2; i < words.size(); ++i) take_rule(body, words[i]);
  body["commands"] = ordered(body["commands"].get<std::string>());
  sdk::Record out;
  out.kind = "acl_user";
  out.id = words[1];
  out.body = body.dump(-1, ' ', false, json::error_handler_t::replace);
  return out;
}

sdk::Health health_of(const Info& info) {
  sdk::Health out;
  out.role = role(info);
  out.server_version = get(info, "redis_version");
  if (get(info, "loading") == "1") {
    out.state = DRIFTD_HEALTH_DEGRADED;
    out.reason = "loading its data set";
  } else if (out.role == "replica" && get(info, "master_link_status") != "up") {
    out.state = DRIFTD_HEALTH_DEGRADED;
    out.reason = "replication link to " + primary(info) + " is " + get(info, "master_link_status");
  }
  return out;
}

}  // namespace driftd::redis
