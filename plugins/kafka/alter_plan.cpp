// SPDX-License-Identifier: Apache-2.0
#include "kafka/alter_plan.hpp"

#include <nlohmann/json.hpp>

#include "common/attribute_path.hpp"
#include "common/shell_text.hpp"
#include "kafka/mapping.hpp"

namespace driftd::kafka {
namespace {

using common::PathStep;
using nlohmann::json;

constexpr std::size_t kMaxValue = 32767;  // a length on the wire has 16 bits, and Kafka takes it as signed

std::string resource_text(const sdk::Identity& id) { return id.kind + "/" + id.id; }

/// Returns the attribute whose members can be set, by kind; empty if the kind has none.
std::string alterable_attribute(const std::string& kind) {
  if (kind == "topic") return "config";
  if (kind == "broker") return "dynamic";
  return kind == "cluster" ? "broker_defaults" : "";
}

/// Why an attribute outside of the alterable one cannot be set, and what a person would do.
struct Refusal {
  std::string why, instead;
};

Refusal refusal_of_topic(const sdk::Identity& id, const std::string& attribute, const json& value,
                         const std::string& server) {
  const std::string tool = "kafka-topics.sh --bootstrap-server " + server + " --alter --topic " +
                           common::shell_word(id.id) + " --partitions ";
  if (attribute == "partitions") {
    return {"Kafka never takes partitions away, and new ones cannot be taken back",
            value.is_number_integer() ? tool + value.dump() : ""};
  }
  if (attribute == "replication_factor") {
    return {"it changes only by a reassignment of the topic's partitions, which copies data",
            "kafka-reassign-partitions.sh --bootstrap-server " + server + " --reassignment-json-file FILE --execute"};
  }
  return {"it is no configuration of the topic", ""};
}

Refusal refusal(const sdk::Identity& id, const std::string& attribute, const json& value, const std::string& server) {
  if (id.kind == "topic") return refusal_of_topic(id, attribute, value, server);
  if (id.kind == "broker") {
    return {attribute == "static" || attribute == "rack"
                ? "it is in the file of the broker: set it in its server.properties and restart the broker"
                : "it is a fact of the broker, not a setting",
            ""};
  }
  if (id.kind == "acl") {
    return {"the binding is its own id, so another binding is one deleted and one created, which enforce never does",
            "kafka-acls.sh --bootstrap-server " + server + " --remove … and --add …"};
  }
  if (id.kind == "scram_user") return {"it is a credential, which is never put back", ""};
  return {"it is a fact of the " + id.kind + ", not a setting", ""};
}

std::string config_words(const std::vector<Alteration>& all, bool set) {
  std::string out;
  for (const auto& one : all) {
    if (one.value.has_value() != set) continue;
    out += (out.empty() ? "" : ",") + one.name;
    if (!set) continue;
    const bool has_comma = one.value->find(',') != std::string::npos;  // kafka-configs.sh keeps them in brackets
    out += "=" + (has_comma ? "[" + *one.value + "]" : *one.value);
  }
  return out;
}

/// Collects what is set and what takes it back.
class Planner {
 public:
  Planner(const sdk::Identity& id, const std::string& server) : id_(id), server_(server) {
    plan_.request.type = id.kind == "topic" ? ConfigResource::topic : ConfigResource::broker;
    plan_.request.name = id.kind == "cluster" ? "" : id.id;
    plan_.undo = plan_.request;
  }
  void add(const sdk::Change& change) {
    const auto path = common::parse_attribute_path(change.path);
    const json before = common::parse_change_value(change.old_value);
    const json after = common::parse_change_value(change.new_value);
    const bool named = path.front().kind == PathStep::Kind::member;
    const std::string attribute = named ? path.front().name : "";
    if (attribute.empty() || attribute != alterable_attribute(id_.kind)) {
      const Refusal found = refusal(id_, attribute, after, server_);
      return refuse(change.path, found.why, found.instead);
    }
    if (path.size() == 1) return add_members(change.path, before, after);
    if (path.size() > 2 || path[1].kind != PathStep::Kind::member)
      return refuse(change.path, "a configuration of Kafka has no parts", "");
    set(change.path, path[1].name, before, after);
  }
  AlterPlan take() { return std::move(plan_); }

 private:
  void refuse(const std::string& path, const std::string& why, const std::string& instead) {
    if (!plan_.impossible.empty()) return;
    plan_.impossible = resource_text(id_) + ": " + path + " cannot be set: " + why;
    plan_.instead = instead;
  }
  /// The whole map: its members that differ.
  void add_members(const std::string& path, const json& before, const json& after) {
    const json nothing = json::object();
    const json& olds = before.is_object() ? before : nothing;
    const json& news = after.is_object() ? after : nothing;
    for (const auto& [key, value] : olds.items()) {
      if (!news.contains(key)) set(path, key, value, nullptr);
    }
    for (const auto& [key, value] : news.items()) {
      const json old = olds.value(key, json());
      if (old != value) set(path, key, old, value);
    }
  }
  void set(const std::string& path, const std::string& key, const json& before, const json& after) {
    Alteration to{key, std::nullopt}, back{key, std::nullopt};
    if (!after.is_null()) to.value = value_text(key, after);
    if (!before.is_null()) back.value = value_text(key, before);
    if (!after.is_null() && !to.value) return refuse(path, "its value is not one that Kafka can hold", "");
    if (to.value && to.value->size() > kMaxValue) return refuse(path, "its value has more than 32767 bytes", "");
    plan_.request.alterations.push_back(std::move(to));
    plan_.undo.alterations.push_back(std::move(back));
  }

  const sdk::Identity& id_;
  const std::string& server_;
  AlterPlan plan_;
};

}  // namespace

std::optional<std::string> value_text(const std::string& key, const json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number() || value.is_boolean()) return value.dump();
  if (!value.is_array()) return std::nullopt;
  const char by = list_separator(key);
  std::string out;
  for (const auto& one : value) {
    if (!one.is_string()) return std::nullopt;
    out += (out.empty() ? "" : std::string(1, by == '\0' ? ',' : by)) + one.get<std::string>();
  }
  return out;
}

AlterPlan plan_alteration(const sdk::Identity& id, std::span<const sdk::Change> changes, const std::string& server) {
  Planner planner(id, server);
  for (const auto& change : changes) planner.add(change);
  return planner.take();
}

std::string alter_command(const AlterRequest& request, const std::string& server) {
  const bool topic = request.type == ConfigResource::topic;
  std::string out =
      "kafka-configs.sh --bootstrap-server " + server + " --alter --entity-type " + (topic ? "topics" : "brokers");
  out += request.name.empty() ? " --entity-default" : " --entity-name " + common::shell_word(request.name);
  if (const auto words = config_words(request.alterations, true); !words.empty())
    out += " --add-config " + common::shell_word(words);
  if (const auto words = config_words(request.alterations, false); !words.empty())
    out += " --delete-config " + common::shell_word(words);
  return out;
}

}  // namespace driftd::kafka
