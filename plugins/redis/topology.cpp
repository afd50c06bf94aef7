// SPDX-License-Identifier: Apache-2.0
#include "redis/topology.hpp"

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "common/bounded_json.hpp"

namespace driftd::redis {
namespace {

using nlohmann::json;

struct Node {
  std::string id, endpoint, hostname, primary;
  std::set<std::string> flags;
  std::vector<std::string> slots;  ///< `0-5460`, `7`; sorted by number
  bool migrating = false;
};

std::set<std::string> split(const std::string& text, char at) {
  std::set<std::string> out;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, at);) out.insert(part);
  return out;
}

/// Joins adjacent ranges: `5 6-7` becomes `5-7`.
std::vector<std::string> merged(std::vector<std::pair<int, int>> ranges) {
  std::sort(ranges.begin(), ranges.end());
  std::vector<std::string> out;
  for (std::size_t i = 0; i < ranges.size();) {
    auto [from, to] = ranges[i];
    while (++i < ranges.size() && ranges[i].first <= to + 1) to = std::max(to, ranges[i].second);
    out.push_back(from == to ? std::to_string(from) : std::to_string(from) + "-" + std::to_string(to));
  }
  return out;
}

/// `id ip:port@cport[,hostname[,…]] flags primary ping pong epoch link slot…` (CLUSTER NODES, 4.0 and newer).
Node parse_node(const std::string& line) {
  std::istringstream in(line);
  Node out;
  std::string address, flags, word;
  in >> out.id >> address >> flags >> out.primary;
  for (int i = 0; i < 4; ++i) in >> word;  // ping, pong, epoch, link
  if (!in) throw sdk::Failure(DRIFTD_CORRUPT, "CLUSTER NODES: a line has fewer than 8 fields", "cluster");
  out.endpoint = address.substr(0, address.find('@'));
  if (const auto comma = address.find(','); comma != std::string::npos) {
    out.hostname = address.substr(comma + 1, address.find(',', comma + 1) - comma - 1);
  }
  if (out.primary == "-") out.primary.clear();
  out.flags = split(flags, ',');
  std::vector<std::pair<int, int>> ranges;
  while (in >> word) {
    if (word.front() == '[') {
      out.migrating = true;
      continue;
    }
    const auto dash = word.find('-');
    const int from = std::atoi(word.c_str());
    ranges.emplace_back(from, dash == std::string::npos ? from : std::atoi(word.c_str() + dash + 1));
  }
  out.slots = merged(std::move(ranges));
  return out;
}

/// Members of the cluster; a node in handshake is not one yet.
std::vector<Node> parse_nodes(const std::string& text) {
  std::vector<Node> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty()) continue;
    Node node = parse_node(line);
    if (node.flags.count("handshake") == 0 && node.flags.count("noaddr") == 0) out.push_back(std::move(node));
  }
  std::sort(out.begin(), out.end(), [](const Node& a, const Node& b) { return a.id < b.id; });
  return out;
}

std::string joined(const std::vector<std::string>& parts, const char* with) {
  std::string out;
  for (const auto& part : parts) out += (out.empty() ? "" : with) + part;
  return out;
}

bool is_replica(const Node& node) { return node.flags.count("slave") > 0 || node.flags.count("replica") > 0; }

json body_of(const std::vector<Node>& nodes) {
  json members = json::array();
  std::set<std::string> shards;
  for (const auto& node : nodes) {
    const bool replica = is_replica(node);
    json member = {{"id", node.id}, {"endpoint", node.endpoint}, {"role", replica ? "replica" : "primary"}};
    if (replica) member["primary"] = node.primary;
    if (!node.hostname.empty()) member["hostname"] = node.hostname;
    if (!node.slots.empty()) member["slots"] = joined(node.slots, " ");
    if (!node.slots.empty()) shards.insert(joined(node.slots, " "));
    members.push_back(std::move(member));
  }
  return {{"shards", shards}, {"nodes", members}};
}

std::string endpoint_of(const Info& master) {
  const std::string host = get(master, "ip");
  return (host.find(':') == std::string::npos ? host : "[" + host + "]") + ":" + get(master, "port");
}

struct Attribute {
  const char* name;
  const char* field;
};
constexpr Attribute kSentinelAttributes[] = {{"quorum", "quorum"},
                                             {"down_after", "down-after-milliseconds"},
                                             {"failover_timeout", "failover-timeout"},
                                             {"parallel_syncs", "parallel-syncs"},
                                             {"notification_script", "notification-script"},
                                             {"client_reconfig_script", "client-reconfig-script"}};

/// Returns the value on which all Sentinels agree, else an unread that lists each answer.
void agree(const std::string& name, const std::map<std::string, std::string>& said, json& body, sdk::Record& record) {
  std::set<std::string> values;
  std::string who;
  for (const auto& [sentinel, value] : said) {
    values.insert(value);
    who += (who.empty() ? "" : ", ") + value + " (" + sentinel + ")";
  }
  if (values.size() > 1)
    record.unread.push_back({name, DRIFTD_UNAVAILABLE, "the Sentinels do not agree: " + who});
  else if (!values.empty() && !values.begin()->empty())
    body[name] = *values.begin();
}

sdk::Record sentinel_record(const std::string& master, const std::vector<SentinelView>& views) {
  sdk::Record out;
  out.kind = "sentinel_master";
  out.id = master;
  json body = json::object(), status = json::object();
  std::map<std::string, std::string> primaries;
  for (const auto& view : views) {
    const auto found = view.masters.find(master);
    if (found == view.masters.end()) continue;
    primaries[view.sentinel] = endpoint_of(found->second);
    for (const char* field : {"config-epoch", "num-slaves", "num-other-sentinels", "flags"}) {
      std::string name = field;
      std::replace(name.begin(), name.end(), '-', '_');
      status[view.sentinel][name == "num_slaves"            ? "replicas"
                            : name == "num_other_sentinels" ? "other_sentinels"
                                                            : name] = get(found->second, field);
    }
  }
  agree("primary", primaries, body, out);
  for (const auto& [name, field] : kSentinelAttributes) {
    std::map<std::string, std::string> said;
    for (const auto& view : views) {
      if (const auto found = view.masters.find(master); found != view.masters.end()) {
        said[view.sentinel] = get(found->second, field);
      }
    }
    agree(name, said, body, out);
  }
  out.body = common::json_text(body);
  out.status = common::json_text(status);
  return out;
}

std::set<std::string> masters_of(const std::vector<SentinelView>& views) {
  std::set<std::string> out;
  for (const auto& view : views) {
    for (const auto& [name, fields] : view.masters) out.insert(name);
  }
  return out;
}

}  // namespace

sdk::Record cluster_record(const std::string& text, const Info& info) {
  const auto nodes = parse_nodes(text);
  std::vector<std::string> failing;
  bool migrating = false;
  for (const auto& node : nodes) {
    if (node.flags.count("fail") > 0) failing.push_back(node.endpoint);
    migrating = migrating || node.migrating;
  }
  json status = {{"failing_nodes", failing}, {"slots_are_moving", migrating}};
  for (const char* field : {"cluster_state", "cluster_current_epoch", "cluster_slots_ok", "cluster_size"}) {
    if (!info.empty()) status[std::string(field).substr(8)] = get(info, field);
  }
  sdk::Record out;
  out.kind = "cluster";
  out.id = "cluster";
  json body = body_of(nodes);
  const auto unsure = std::find_if(nodes.begin(), nodes.end(),
                                   [](const Node& node) { return is_replica(node) && node.primary.empty(); });
  if (unsure != nodes.end()) {  // it just became a replica, and this node does not know of which primary
    body.erase("nodes");
    out.unread.push_back(
        {"nodes", DRIFTD_UNAVAILABLE, "it is not known yet whose replica " + unsure->endpoint + " is"});
  }
  out.body = body.dump();
  out.status = common::json_text(status);
  return out;
}

std::string cluster_fingerprint(const std::string& text) { return body_of(parse_nodes(text)).dump(); }

std::vector<sdk::Record> sentinel_records(const std::vector<SentinelView>& views) {
  std::vector<sdk::Record> out;
  for (const auto& name : masters_of(views)) out.push_back(sentinel_record(name, views));
  return out;
}

std::vector<std::string> primary_conflicts(const std::vector<SentinelView>& views) {
  std::vector<std::string> out;
  for (const auto& name : masters_of(views)) {
    std::set<std::string> primaries;
    std::string who;
    for (const auto& view : views) {
      const auto found = view.masters.find(name);
      if (found == view.masters.end()) continue;
      primaries.insert(endpoint_of(found->second));
      who += (who.empty() ? "" : ", ") + endpoint_of(found->second) + " (" + view.sentinel + ")";
    }
    if (primaries.size() > 1) out.push_back(name + ": " + who);
  }
  return out;
}

std::string primary_named(const std::vector<SentinelView>& views, const std::string& master) {
  std::string out;
  long long newest = -1;
  for (const auto& view : views) {
    const auto found = view.masters.find(master);
    if (found == view.masters.end()) continue;
    const long long epoch = std::atoll(get(found->second, "config-epoch").c_str());
    if (epoch > newest) {
      newest = epoch;
      out = endpoint_of(found->second);
    }
  }
  return out;
}

}  // namespace driftd::redis
