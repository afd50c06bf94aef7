// SPDX-License-Identifier: Apache-2.0
#include "kafka/reader.hpp"

#include <algorithm>

#include "kafka/text.hpp"

namespace driftd::kafka {
namespace {

constexpr std::size_t kMaxTopicBytes = 64u << 20;  // all topic records together
constexpr std::size_t kMostTold = 20;              // too long values that are named
constexpr std::size_t kMaxHelloBrokers = 3;        // brokers that are tried, one after the other

std::string same_up_to_nul(const std::string& what, const std::string& id) {
  return "several " + what + " are called " + one_line(id) +
         " up to a NUL byte, where this library ends a name: while they are there the deletion of one is not seen";
}

/// Names what is too long even for a new topic, whose baseline does not hold it yet.
void tell_long(Listing& out) {
  std::size_t count = 0;
  for (const auto& record : out.records) {
    for (const auto& unread : record.unread) {
      if (unread.code != DRIFTD_BUDGET || ++count > kMostTold) continue;
      out.diagnostics.push_back(
          {DRIFTD_BUDGET, "topic", {}, {}, record.id + ": " + unread.path + ": " + unread.reason, {}, 0});
    }
  }
  if (count > kMostTold)
    out.diagnostics.push_back(
        {DRIFTD_BUDGET, "topic", {}, {}, "and " + std::to_string(count - kMostTold) + " more are too long", {}, 0});
}

void add(ReplicaHealth& to, const ReplicaHealth& more) {
  to.partitions += more.partitions;
  to.offline += more.offline;
  to.under_replicated += more.under_replicated;
  to.under_min_isr += more.under_min_isr;
}

}  // namespace

Listing Reader::list(std::string_view kind) {
  if (kind == "cluster") return clusters();
  if (kind == "broker") return live_brokers();
  if (kind == "topic") return topics(nullptr);
  if (kind == "acl") return bindings();
  if (kind == "group") return groups();
  if (kind == "scram_user") return scram_users();
  return {{}, false, {{DRIFTD_UNSUPPORTED, "quota", {}, {}, "librdkafka has no request for client quotas"}}};
}

Listing Reader::clusters() {
  const Metadata& seen = answers_.metadata();
  const Configs* defaults = nullptr;
  Outcome why{DRIFTD_UNAVAILABLE, "no broker is alive"};
  for (const auto& one : answers_.brokers()) {
    if (!one.outcome.ok())
      why = one.outcome;
    else if (defaults == nullptr)
      defaults = &one;
  }
  if (!counted_) {  // the topics' configuration was not asked for
    for (const auto& topic : seen.topics) add(replica_health_, kafka::replica_health(topic, 0));
    replica_health_.under_min_isr = -1;
    counted_ = true;
  }
  Listing out;
  out.records.push_back(map_cluster(settings_.bootstrap, seen, defaults, why, replica_health_));
  out.records.back().observed_ns = answers_.metadata_sent();
  if (defaults == nullptr && why.code == DRIFTD_DENIED) {
    out.diagnostics.push_back(denied("cluster", "DescribeConfigs on Cluster", "broker_defaults: " + why.text));
  }
  return out;
}

Listing Reader::live_brokers() {
  Listing out;
  std::map<std::string, const Configs*> configs;
  for (const auto& one : answers_.brokers()) configs[one.name] = &one;
  for (const auto& broker : answers_.metadata().brokers) {
    const auto found = configs.find(std::to_string(broker.id));
    if (found == configs.end()) continue;
    out.records.push_back(map_broker(broker, *found->second));
    out.records.back().observed_ns = answers_.metadata_sent();
    if (found->second->outcome.code != DRIFTD_DENIED || !out.diagnostics.empty()) continue;
    out.diagnostics.push_back(
        denied("broker", "DescribeConfigs on Cluster", "configuration: " + found->second->outcome.text));
  }
  for (const auto id : silent_brokers(answers_.metadata())) {
    out.records.push_back(map_silent_broker(std::to_string(id)));
    out.records.back().observed_ns = answers_.metadata_sent();
  }
  return out;
}

std::vector<const Topic*> Reader::wanted_topics(const std::set<std::string>* only) {
  std::vector<const Topic*> out;
  for (const auto& topic : answers_.metadata().topics) {
    if (only != nullptr ? only->count(topic.name) > 0 : settings_.scope.wants("topic", topic.name))
      out.push_back(&topic);
  }
  std::sort(out.begin(), out.end(), [](const Topic* a, const Topic* b) { return a->name < b->name; });
  return out;
}

Listing Reader::topics(const std::set<std::string>* only) {
  Listing out;
  std::vector<std::string> names;
  const auto wanted = wanted_topics(only);
  for (const Topic* topic : wanted) names.push_back(topic->name);
  const auto ids = client_.topic_ids(call_, names);
  if (only == nullptr) replica_health_ = {};
  counted_ = counted_ || only == nullptr;
  for (std::size_t from = 0; from < names.size(); from += Client::kBatch) {
    const std::size_t to = std::min(names.size(), from + Client::kBatch);
    const auto configs = client_.topic_configs(
        call_, {names.begin() + static_cast<std::ptrdiff_t>(from), names.begin() + static_cast<std::ptrdiff_t>(to)});
    for (std::size_t i = from; i < to; ++i) {
      const auto id = ids.find(names[i]);
      add_topic(*wanted[i], configs[i - from], id == ids.end() ? std::string() : id->second, only == nullptr, out);
    }
    bound_topics(out.records, kMaxTopicBytes);
  }
  tell_long(out);
  if (const auto& hidden = visibility_.topics_hidden()) {
    out.whole = false;
    out.diagnostics.push_back(*hidden);
  }
  return out;
}

void Reader::add_topic(const Topic& topic, const Configs& configs, const std::string& id, bool counts, Listing& out) {
  // The topic was deleted after the list was made; it is checked by name like any missing one. The list stays complete,
  // or a user who keeps creating and deleting topics could hide the deletion of others.
  if (configs.outcome.code == DRIFTD_NOT_FOUND) return;
  if (counts) add(replica_health_, kafka::replica_health(topic, min_isr(configs)));
  out.records.push_back(map_topic(topic, configs, id));
  out.records.back().observed_ns = answers_.metadata_sent();
  if (configs.outcome.code != DRIFTD_DENIED || !out.diagnostics.empty()) return;
  out.diagnostics.push_back(denied("topic", "DescribeConfigs on Topic " + topic.name + " (or on Topic *)",
                                   "configuration: " + configs.outcome.text));
}

Listing Reader::bindings() {
  Listing out;
  if (answers_.acls().open) {  // no list is not an empty list: an authorizer that was switched off deletes no binding
    return {{},
            false,
            {{DRIFTD_UNSUPPORTED, "acl", {}, {}, "the cluster has no authorizer, so there are no ACLs to list"}}};
  }
  if (answers_.acls().outcome.code == DRIFTD_UNSUPPORTED)
    return {{}, false, {{DRIFTD_UNSUPPORTED, "acl", {}, {}, answers_.acls().outcome.text}}};
  if (auto hidden = visibility_.cluster_hidden("acl")) return {{}, false, {*hidden}};
  std::size_t unknown = 0;
  std::set<std::string> seen;
  for (const auto& acl : answers_.acls().bindings) {
    unknown += known(acl) ? 0 : 1;
    if (!known(acl)) continue;
    sdk::Record record = map_acl(acl);
    if (!seen.insert(record.id).second) {
      out.diagnostics.push_back({DRIFTD_CORRUPT, "acl", record.id, {}, same_up_to_nul("bindings", record.id)});
      continue;
    }
    out.records.push_back(std::move(record));
    out.records.back().observed_ns = answers_.acls_sent();
  }
  std::sort(out.records.begin(), out.records.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  if (unknown > 0) {
    out.diagnostics.push_back({DRIFTD_UNSUPPORTED,
                               "acl",
                               {},
                               {},
                               std::to_string(unknown) +
                                   " bindings are left out: this build's librdkafka does not know their resource "
                                   "type or operation (transactional ids, delegation tokens)"});
  }
  return out;
}

Listing Reader::groups() {
  Listing out;
  const std::int64_t sent = call_.now_ns();
  const Groups seen = client_.groups(call_);
  std::set<std::string> names;
  for (const auto& group : seen.groups) {
    sdk::Record record = map_group(group);
    if (!names.insert(record.id).second) {
      out.diagnostics.push_back({DRIFTD_CORRUPT, "group", record.id, {}, same_up_to_nul("groups", record.id)});
      continue;
    }
    record.observed_ns = sent;
    out.records.push_back(std::move(record));
  }
  std::sort(out.records.begin(), out.records.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  if (!seen.outcome.ok()) {
    out.whole = false;
    out.diagnostics.push_back(
        {seen.outcome.code, "group", {}, {}, "not all brokers listed their groups: " + seen.outcome.text});
  }
  const auto offsets = std::find_if(answers_.metadata().topics.begin(), answers_.metadata().topics.end(),
                                    [](const Topic& topic) { return topic.name == "__consumer_offsets"; });
  if (offsets == answers_.metadata().topics.end()) {
    if (auto hidden = visibility_.offsets_hidden()) {
      out.whole = false;
      out.diagnostics.push_back(*hidden);
    }
  } else if (kafka::replica_health(*offsets, 0).offline > 0) {
    out.whole = false;
    out.diagnostics.push_back({DRIFTD_UNAVAILABLE,
                               "group",
                               {},
                               {},
                               "partitions of __consumer_offsets have no leader: their groups are not listed"});
  }
  if (!answers_.acls().open) {
    if (auto hidden = visibility_.cluster_hidden("group")) {
      out.whole = false;
      out.diagnostics.push_back(*hidden);
    }
  }
  return out;
}

/// If the library cannot list users, the kind consists of those whose salts are read.
Listing Reader::scram_users() {
  Listing out;
  const std::int64_t sent = call_.now_ns();
  ScramUsers listed;
  if (has_scram_users() || settings_.hello.names.empty()) listed = client_.scram_users(call_);
  if (!listed.outcome.ok()) {
    out.whole = false;
    const bool denial = listed.outcome.code == DRIFTD_DENIED;
    out.diagnostics.push_back(denial ? denied("scram_user", "Describe on Cluster", listed.outcome.text)
                                     : sdk::Diagnostic{listed.outcome.code, "scram_user", {}, {}, listed.outcome.text});
  }
  std::map<ScramName, std::optional<std::int32_t>> wanted;
  for (const auto& user : listed.users) {
    for (const auto& [mechanism, iterations] : user.iterations) wanted[{user.name, mechanism}] = iterations;
  }
  const std::set<ScramName> named(settings_.hello.names.begin(), settings_.hello.names.end());
  if (!has_scram_users() || !out.whole) {
    for (const auto& name : named) wanted.emplace(name, std::nullopt);
  }
  std::vector<std::string> brokers;  // not the bootstrap servers: their names may later lead to another cluster
  if (!named.empty() && settings_.hello.servers.empty()) {
    for (const auto& broker : answers_.metadata().brokers) {
      if (brokers.size() == kMaxHelloBrokers) break;
      brokers.push_back(endpoint_of(broker));
    }
  }
  bool reachable = true;  // only one time-out for all of them
  for (const auto& [name, iterations] : wanted) {
    std::optional<ScramHelloResult> hello;
    const bool in_scope = settings_.scope.wants("scram_user", scram_id(name));
    if (named.count(name) > 0 && in_scope) hello = hellos_.result_for(call_, name, brokers, reachable);
    reachable = reachable && (!hello || hello->answered || hello->observed_ns < sent);
    if (hello && !hello->outcome.ok() && out.diagnostics.empty()) {
      out.diagnostics.push_back(
          {hello->outcome.code, "scram_user", {}, {}, scram_id(name) + ": " + hello->outcome.text});
    }
    if (!iterations && !hello) continue;
    out.records.push_back(map_scram_user(name, iterations, hello ? &*hello : nullptr));
    out.records.back().observed_ns = iterations ? sent : hello->observed_ns;
  }
  return out;
}

Listing Reader::read(std::string_view kind, const std::set<std::string>& ids) {
  if (kind == "quota") {  // this build never lists a quota, so none can be deleted
    Listing out;
    for (const auto& id : ids)
      out.diagnostics.push_back({DRIFTD_NOT_FOUND, std::string(kind), id, {}, "this build lists none of this kind"});
    return out;
  }
  Listing all = kind == "topic" ? topics(&ids) : list(kind);
  Listing out;
  out.whole = all.whole;
  out.diagnostics = std::move(all.diagnostics);
  std::set<std::string> missing = ids;
  for (auto& record : all.records) {
    if (missing.erase(record.id) > 0) out.records.push_back(std::move(record));
  }
  if (kind == "topic")
    settle_missing_topics(missing, out);
  else if (kind == "scram_user" && !has_scram_users())
    settle_missing_salts(missing, out);
  else
    settle_missing(kind, missing, out);
  return out;
}

/// Without a list of users it is not known whether a credential exists whose salt is not read.
void Reader::settle_missing_salts(const std::set<std::string>& missing, Listing& out) const {
  for (const auto& id : missing) {
    if (!is_scram_id(id))
      out.diagnostics.push_back({DRIFTD_NOT_FOUND, "scram_user", id, {}, "no credential has such an id"});
    else
      out.diagnostics.push_back({DRIFTD_UNSUPPORTED, "scram_user", id, {}, "settings.scram_hello does not name it"});
  }
}

void Reader::settle_missing_topics(const std::set<std::string>& missing, Listing& out) {
  for (const auto& [name, outcome] : client_.topic_presence(call_, {missing.begin(), missing.end()})) {
    if (outcome.code == DRIFTD_NOT_FOUND && !visibility_.topics_hidden()) {
      out.diagnostics.push_back({DRIFTD_NOT_FOUND, "topic", name, {}, "gone", {}, 0});
      continue;
    }
    out.whole = false;
    const bool denial = outcome.code == DRIFTD_DENIED || outcome.code == DRIFTD_NOT_FOUND;
    const std::string right =
        outcome.code == DRIFTD_NOT_FOUND ? visibility_.topics_hidden()->right : "Describe on Topic " + name;
    out.diagnostics.push_back({denial ? DRIFTD_DENIED : DRIFTD_UNAVAILABLE,
                               "topic",
                               name,
                               {},
                               denial ? "not visible without " + right : "not listed, but there: " + outcome.text,
                               denial ? right : std::string(),
                               0});
  }
}

void Reader::settle_missing(std::string_view kind, const std::set<std::string>& missing, Listing& out) const {
  const bool left_out = std::any_of(out.diagnostics.begin(), out.diagnostics.end(),
                                    [](const auto& one) { return one.code == DRIFTD_UNSUPPORTED; });
  for (const auto& id : missing) {
    const bool number = !id.empty() && id.size() <= 10 && id.find_first_not_of("0123456789") == std::string::npos;
    if (kind == "broker" && number) {
      out.records.push_back(map_silent_broker(id));
    } else if (kind == "acl" && left_out && !listed_by_every_library(id)) {
      out.diagnostics.push_back(
          {DRIFTD_UNSUPPORTED, "acl", id, {}, "it may be one of those that this build's librdkafka leaves out"});
    } else if (out.whole) {
      out.diagnostics.push_back({DRIFTD_NOT_FOUND, std::string(kind), id, {}, "gone", {}, 0});
    } else {
      out.diagnostics.push_back(
          {DRIFTD_UNAVAILABLE, std::string(kind), id, {}, "not seen, but not all of this kind can be seen"});
    }
  }
}

}  // namespace driftd::kafka
