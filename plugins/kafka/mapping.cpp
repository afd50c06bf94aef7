// SPDX-License-Identifier: Apache-2.0
#include "kafka/mapping.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>

#include "common/bounded_json.hpp"
#include "common/utf8_text.hpp"

namespace driftd::kafka {
namespace {

using nlohmann::json;

constexpr std::size_t kMostListed = 100;
constexpr std::size_t kMaxConfig = 64 << 10;  ///< bytes of one topic's own configuration

/// Keys whose value is a list (ConfigDef.Type.LIST), without `listener.name.<listener>.` before them.
constexpr std::array<std::string_view, 19> kLists{"cleanup.policy",
                                                  "log.cleanup.policy",
                                                  "leader.replication.throttled.replicas",
                                                  "follower.replication.throttled.replicas",
                                                  "listeners",
                                                  "advertised.listeners",
                                                  "controller.listener.names",
                                                  "controller.quorum.voters",
                                                  "controller.quorum.bootstrap.servers",
                                                  "process.roles",
                                                  "log.dirs",
                                                  "sasl.enabled.mechanisms",
                                                  "ssl.cipher.suites",
                                                  "ssl.enabled.protocols",
                                                  "metric.reporters",
                                                  "early.start.listeners",
                                                  "group.coordinator.rebalance.protocols",
                                                  "group.consumer.assignors",
                                                  "listener.security.protocol.map"};

std::string_view bare_key(std::string_view key) {
  constexpr std::string_view kPrefix = "listener.name.";
  if (!key.starts_with(kPrefix)) return key;
  const auto dot = key.find('.', kPrefix.size());
  return dot == std::string_view::npos ? key : key.substr(dot + 1);
}

char separator(std::string_view key) {
  const std::string_view bare = bare_key(key);
  if (bare == "super.users") return ';';
  return std::find(kLists.begin(), kLists.end(), bare) != kLists.end() ? ',' : '\0';
}

json typed(const std::string& key, const std::string& value) {
  const char by = separator(key);
  if (by == '\0') return value;
  json out = json::array();
  for (std::size_t from = 0; from <= value.size();) {
    const std::size_t to = std::min(value.find(by, from), value.size());
    const auto begin = value.find_first_not_of(" \t", from);
    if (begin < to) out.push_back(value.substr(begin, value.find_last_not_of(" \t", to - 1) - begin + 1));
    from = to + 1;
  }
  return out;
}

/// `map["a.b"]`
std::string path_of(const std::string& map, const std::string& key) { return map + "[" + common::json_text(key) + "]"; }

/// Puts a set value into `into`, or the reason why it is hidden into the record's unread paths.
void put(sdk::Record& record, json& into, const std::string& map, const ConfigEntry& entry) {
  if (entry.value) {
    into[entry.name] = typed(entry.name, *entry.value);
  } else if (entry.sensitive) {
    record.unread.push_back(
        {path_of(map, entry.name), DRIFTD_UNSUPPORTED, "sensitive: Kafka shows this value to nobody"});
  }
}

/// Returns the synonym of `entry` from `source`, if there is one; aliases of a key (log.retention.hours) have entries
/// of their own.
const ConfigEntry* set_at(const ConfigEntry& entry, Source source) {
  for (const auto& one : entry.synonyms) {
    if (one.source == source && one.name == entry.name) return &one;
  }
  return entry.source == source ? &entry : nullptr;
}

void put_all(sdk::Record& record, json& body, const std::string& map, const Configs& configs, Source source) {
  json& into = body[map] = json::object();
  for (const auto& entry : configs.entries) {
    const ConfigEntry* found = set_at(entry, source);
    if (found == nullptr) continue;
    ConfigEntry one = *found;
    one.sensitive = entry.sensitive;
    put(record, into, map, one);
  }
}

/// Returns true if the broker reports where values come from (1.1 and newer).
bool has_sources(const Configs& configs) {
  return std::none_of(configs.entries.begin(), configs.entries.end(),
                      [](const ConfigEntry& entry) { return entry.source == Source::unknown; });
}

sdk::Unread unread(const std::string& path, const Outcome& why, const std::string& right) {
  const bool denied = why.code == DRIFTD_DENIED;
  return {path, why.code, denied ? why.text + "; grant " + right : why.text};
}

constexpr const char* kNoSource = "the broker does not say where values come from (older than 1.1)";

json ids(const std::vector<std::int32_t>& from) {
  json out = json::array();
  for (const auto id : from) out.push_back(id);
  return out;
}

bool healthy(const Partition& p, std::int64_t min_isr) {
  return p.leader >= 0 && p.isr.size() >= p.replicas.size() && static_cast<std::int64_t>(p.isr.size()) >= min_isr;
}

json topic_status(const Topic& topic, std::int64_t min_isr) {
  const ReplicaHealth all = replica_health(topic, min_isr);
  json out{{"offline_partitions", all.offline}, {"under_replicated_partitions", all.under_replicated}};
  if (min_isr > 0) out["under_min_isr_partitions"] = all.under_min_isr;
  json isr = json::object();
  for (const auto& p : topic.partitions) {
    if (!healthy(p, min_isr) && isr.size() < kMostListed) isr[std::to_string(p.id)] = ids(p.isr);
  }
  if (!isr.empty()) out["isr"] = isr;
  return out;
}

std::string escaped(const std::string& part) {
  std::string out;
  for (const char c : part) {
    if (c == '%')
      out += "%25";
    else if (c == '|')
      out += "%7C";
    else
      out.push_back(c);
  }
  return out;
}

}  // namespace

char list_separator(std::string_view key) { return separator(key); }

std::string value_json(const std::string& key, const std::string& value) { return typed(key, value).dump(); }

ReplicaHealth replica_health(const Topic& topic, std::int64_t min_isr) {
  ReplicaHealth out;
  for (const auto& p : topic.partitions) {
    ++out.partitions;
    out.offline += p.leader < 0 ? 1 : 0;
    out.under_replicated += p.isr.size() < p.replicas.size() ? 1 : 0;
    out.under_min_isr += static_cast<std::int64_t>(p.isr.size()) < min_isr ? 1 : 0;
  }
  return out;
}

std::int64_t min_isr(const Configs& configs) {
  for (const auto& entry : configs.entries) {
    std::int64_t out = 0;
    if (entry.name != "min.insync.replicas" || !entry.value) continue;
    std::from_chars(entry.value->data(), entry.value->data() + entry.value->size(), out);
    return out;
  }
  return 0;
}

sdk::Record map_cluster(const std::vector<std::string>& bootstrap, const Metadata& metadata, const Configs* defaults,
                        const Outcome& why, const ReplicaHealth& all) {
  sdk::Record out{.kind = "cluster", .id = "cluster"};
  json body{{"cluster_id", metadata.cluster_id}, {"bootstrap_servers", bootstrap}};
  if (defaults == nullptr) {
    out.unread.push_back(unread("broker_defaults.**", why, "DescribeConfigs on Cluster"));
  } else if (!has_sources(*defaults)) {
    out.unread.push_back({"broker_defaults.**", DRIFTD_UNSUPPORTED, kNoSource});
  } else {
    put_all(out, body, "broker_defaults", *defaults, Source::broker_default);
  }
  out.body = common::json_text(body);
  json status{{"brokers", metadata.brokers.size()},
              {"topics", metadata.topics.size()},
              {"partitions", all.partitions},
              {"offline_partitions", all.offline},
              {"under_replicated_partitions", all.under_replicated}};
  if (all.under_min_isr >= 0) status["under_min_isr_partitions"] = all.under_min_isr;
  out.status = common::json_text(status);
  return out;
}

std::string endpoint_of(const Broker& broker) {
  const bool six = broker.host.find(':') != std::string::npos;
  return (six ? "[" + broker.host + "]" : broker.host) + ":" + std::to_string(broker.port);
}

sdk::Record map_broker(const Broker& broker, const Configs& configs) {
  sdk::Record out{.kind = "broker", .id = std::to_string(broker.id)};
  json body{{"endpoint", endpoint_of(broker)}};
  if (!configs.outcome.ok()) {
    for (const char* path : {"static.**", "dynamic.**", "rack"}) {
      out.unread.push_back(unread(path, configs.outcome, "DescribeConfigs on Cluster"));
    }
  } else if (!has_sources(configs)) {
    for (const char* path : {"static.**", "dynamic.**"}) out.unread.push_back({path, DRIFTD_UNSUPPORTED, kNoSource});
  } else {
    put_all(out, body, "static", configs, Source::fixed);
    put_all(out, body, "dynamic", configs, Source::broker);
  }
  for (const auto& entry : configs.entries) {
    if (entry.name == "broker.rack" && entry.value) body["rack"] = *entry.value;
  }
  if (body.contains("static")) body["static"].erase("broker.rack");
  out.body = common::json_text(body);
  out.status = json{{"live", true}}.dump();
  return out;
}

sdk::Record map_silent_broker(const std::string& id) {
  sdk::Record out{.kind = "broker", .id = id};
  for (const char* path : {"endpoint", "rack", "static.**", "dynamic.**"}) {
    out.unread.push_back(
        {path, DRIFTD_UNAVAILABLE, "the broker is not alive: stopped or unregistered, the cluster does not say which"});
  }
  out.status = json{{"live", false}}.dump();
  return out;
}

std::set<std::int32_t> silent_brokers(const Metadata& metadata) {
  std::set<std::int32_t> out;
  for (const auto& topic : metadata.topics) {
    for (const auto& p : topic.partitions) out.insert(p.replicas.begin(), p.replicas.end());
  }
  for (const auto& broker : metadata.brokers) out.erase(broker.id);
  return out;
}

namespace {

void fit_config(sdk::Record& record, json& config) {
  std::vector<std::string> left_out;
  (void)common::fit_members(config, kMaxConfig, left_out);
  for (const auto& key : left_out) {
    record.unread.push_back({path_of("config", key), DRIFTD_BUDGET,
                             "the topic's own configuration has more than 64 KiB, and this is of the longest"});
  }
}

}  // namespace

void bound_topics(Records& topics, std::size_t max_bytes) {
  std::size_t have = 0;
  for (const auto& topic : topics) have += topic.body.size();
  if (have <= max_bytes) return;
  std::vector<sdk::Record*> by_size;
  for (auto& topic : topics) by_size.push_back(&topic);
  std::sort(by_size.begin(), by_size.end(), [](const auto* a, const auto* b) {
    return a->body.size() != b->body.size() ? a->body.size() > b->body.size() : a->id < b->id;
  });
  for (auto* topic : by_size) {
    if (have <= max_bytes) return;
    json body = json::parse(topic->body);
    if (body.erase("config") == 0) continue;
    have -= topic->body.size();
    topic->body = common::json_text(body);
    have += topic->body.size();
    std::erase_if(topic->unread, [](const auto& one) { return one.path.starts_with("config["); });
    topic->unread.push_back(
        {"config.**", DRIFTD_BUDGET,
         "the topics of this cluster have more configuration together than is kept, and this one's is of the largest"});
  }
}

sdk::Record map_topic(const Topic& topic, const Configs& configs, const std::string& id) {
  sdk::Record out{.kind = "topic", .id = common::utf8_text(topic.name)};
  out.external_name = id;
  json body = json::object();
  if (topic.partitions.empty()) {
    const Outcome why =
        topic.outcome.ok() ? Outcome{DRIFTD_UNAVAILABLE, "the broker named no partition yet"} : topic.outcome;
    for (const char* path : {"partitions", "replication_factor"}) {
      out.unread.push_back(unread(path, why, "Describe on Topic " + topic.name));
    }
  } else {
    body["partitions"] = topic.partitions.size();
    std::size_t least = topic.partitions.front().replicas.size();  // a reassignment adds replicas for a while
    for (const auto& p : topic.partitions) least = std::min(least, p.replicas.size());
    body["replication_factor"] = least;
  }
  if (!configs.outcome.ok()) {
    out.unread.push_back(unread("config.**", configs.outcome, "DescribeConfigs on Topic " + topic.name));
  } else if (!has_sources(configs)) {
    out.unread.push_back({"config.**", DRIFTD_UNSUPPORTED, kNoSource});
  } else {
    put_all(out, body, "config", configs, Source::topic);
    fit_config(out, body["config"]);
  }
  out.body = common::json_text(body);
  out.status = topic_status(topic, min_isr(configs)).dump();
  return out;
}

std::string acl_id(const Acl& acl) {
  return escaped(acl.principal) + "|" + escaped(acl.host) + "|" + acl.operation + "|" + acl.permission + "|" +
         acl.type + "|" + escaped(acl.name) + "|" + acl.pattern;
}

bool listed_by_every_library(const std::string& id) {
  // of librdkafka 2.0, the oldest that is built with
  constexpr std::array<std::string_view, 3> kTypes{"Topic", "Group", "Cluster"};
  constexpr std::array<std::string_view, 3> kLater{"CreateTokens", "DescribeTokens", "TwoPhaseCommit"};
  std::vector<std::string_view> parts;
  for (std::string_view rest = id;; rest.remove_prefix(parts.back().size() + 1)) {
    parts.push_back(rest.substr(0, rest.find('|')));
    if (parts.back().size() == rest.size()) break;
  }
  const auto is_in = [](const auto& words, std::string_view word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  };
  return parts.size() == 7 && is_in(kTypes, parts[4]) && !is_in(kLater, parts[2]);
}

bool known(const Acl& acl) {
  for (const auto& word : {acl.type, acl.operation, acl.permission, acl.pattern}) {
    if (word == "Unknown") return false;
  }
  return true;
}

const Acl* hiding_topics(const std::vector<Acl>& bindings, const std::string& principal) {
  for (const auto& acl : bindings) {
    const bool covers =
        acl.permission == "Deny" && acl.type == "Topic" && (acl.operation == "Describe" || acl.operation == "All");
    const bool ours = principal.empty() || acl.principal == principal || acl.principal == "User:*";
    if (covers && ours) return &acl;
  }
  return nullptr;
}

sdk::Record map_acl(const Acl& acl) {
  sdk::Record out{.kind = "acl", .id = common::utf8_text(acl_id(acl))};
  const auto text = [](const std::string& part) { return common::utf8_text(part); };
  out.body = json{{"principal", text(acl.principal)}, {"host", text(acl.host)},    {"operation", acl.operation},
                  {"permission", acl.permission},     {"resource_type", acl.type}, {"resource_name", text(acl.name)},
                  {"pattern_type", acl.pattern}}
                 .dump();
  return out;
}

sdk::Record map_group(const Group& group) {
  sdk::Record out{.kind = "group", .id = common::utf8_text(group.id)};
  out.body = json{{"protocol_type", group.simple ? "" : "consumer"}}.dump();
  out.status = json{{"state", group.state}}.dump();
  return out;
}

std::string scram_id(const ScramName& of) { return of.user + "/" + of.mechanism; }

bool is_scram_id(const std::string& id) {
  const auto slash = id.rfind('/');
  return slash != std::string::npos && slash > 0 && id.compare(slash + 1, 10, "SCRAM-SHA-") == 0;
}

sdk::Record map_scram_user(const ScramName& of, std::optional<std::int32_t> iterations, const ScramHelloResult* hello) {
  sdk::Record out{.kind = "scram_user", .id = common::utf8_text(scram_id(of))};
  json body = json::object();
  const Outcome off{DRIFTD_UNSUPPORTED,
                    "settings.scram_hello does not name it: a password that is set again is not seen"};
  const Outcome& why = hello == nullptr ? off : hello->outcome;
  if (hello != nullptr && why.ok()) {
    body["salt"] = hello->salt;
    if (!iterations) iterations = hello->iterations;
  } else {
    out.unread.push_back({"salt", why.code, why.text});
  }
  if (iterations)
    body["iterations"] = *iterations;
  else
    out.unread.push_back({"iterations", why.code, why.text});
  out.body = common::json_text(body);
  return out;
}

}  // namespace driftd::kafka
