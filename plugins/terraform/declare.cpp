// SPDX-License-Identifier: Apache-2.0
#include "terraform/declare.hpp"

#include <algorithm>
#include <array>
#include <span>

#include "terraform/declare_custom.hpp"
#include "terraform/tree.hpp"

namespace driftd::terraform {
namespace {

using nlohmann::json;

/// An attribute of the Terraform resource and its name at driftd's provider. A value of null, "" or DEFAULT declares
/// nothing.
struct Pair {
  const char *from, *to;
};

constexpr std::array<Pair, 8> kRole = {{{"superuser", "superuser"},
                                        {"inherit", "inherit"},
                                        {"create_role", "create_role"},
                                        {"create_database", "create_db"},
                                        {"login", "login"},
                                        {"replication", "replication"},
                                        {"bypass_row_level_security", "bypass_rls"},
                                        {"connection_limit", "connection_limit"}}};
constexpr std::array<Pair, 8> kDatabase = {{{"owner", "owner"},
                                            {"encoding", "encoding"},
                                            {"lc_collate", "collation"},
                                            {"lc_ctype", "ctype"},
                                            {"tablespace_name", "tablespace"},
                                            {"connection_limit", "connection_limit"},
                                            {"allow_connections", "allow_connections"},
                                            {"is_template", "is_template"}}};
constexpr std::array<Pair, 2> kExtension = {{{"version", "version"}, {"schema", "schema"}}};
constexpr std::array<Pair, 1> kSchema = {{{"owner", "owner"}}};
constexpr std::array<Pair, 3> kPublication = {
    {{"owner", "owner"}, {"all_tables", "all_tables"}, {"publish_via_partition_root_param", "via_root"}}};
constexpr std::array<Pair, 1> kSubscription = {{{"slot_name", "slot"}}};
constexpr std::array<Pair, 2> kSlot = {{{"plugin", "plugin"}, {"database", "database"}}};
constexpr std::array<Pair, 2> kTopic = {{{"partitions", "partitions"}, {"replication_factor", "replication_factor"}}};
constexpr std::array<Pair, 1> kConfluentTopic = {{{"partitions_count", "partitions"}}};
constexpr std::array<Pair, 2> kSecret = {{{"type", "type"}, {"immutable", "immutable"}}};
constexpr std::array<Pair, 1> kConfigMap = {{{"immutable", "immutable"}}};

/// A resource type and the kind that it declares. `id` is the attribute that names the resource; if null, `special`
/// sets it.
struct Mapping {
  const char *type, *kind, *id;
  std::span<const Pair> attributes;
  bool (*special)(const CustomMapping&);
  const char* source = nullptr;  ///< where others have a type of this name: the end of the provider's address
};
const Mapping kMappings[] = {
    {"postgresql_role", "role", "name", kRole, &postgres_role},
    {"postgresql_database", "database", "name", kDatabase, nullptr},
    {"postgresql_extension", "extension", nullptr, kExtension, &in_database},
    {"postgresql_schema", "schema", nullptr, kSchema, &in_database},
    {"postgresql_publication", "publication", nullptr, kPublication, &postgres_publication},
    {"postgresql_subscription", "subscription", nullptr, kSubscription, &postgres_subscription},
    {"postgresql_replication_slot", "slot", "name", kSlot, &postgres_logical_slot},
    {"postgresql_physical_replication_slot", "slot", "name", {}, &postgres_physical_slot},
    {"kafka_topic", "topic", "name", kTopic, &kafka_config},
    {"confluent_kafka_topic", "topic", "topic_name", kConfluentTopic, &kafka_config},
    {"kafka_acl", "acl", nullptr, {}, &kafka_acl},
    {"confluent_kafka_acl", "acl", nullptr, {}, &confluent_acl},
    {"kubernetes_secret", "secret", nullptr, kSecret, &kubernetes_data},
    {"kubernetes_secret_v1", "secret", nullptr, kSecret, &kubernetes_data},
    {"kubernetes_config_map", "config_map", nullptr, kConfigMap, &kubernetes_config},
    {"kubernetes_config_map_v1", "config_map", nullptr, kConfigMap, &kubernetes_config},
    {"kubernetes_service", "service", nullptr, {}, &kubernetes_service},
    {"kubernetes_service_v1", "service", nullptr, {}, &kubernetes_service},
    {"kubernetes_deployment", "deployment", nullptr, {}, &kubernetes_workload},
    {"kubernetes_deployment_v1", "deployment", nullptr, {}, &kubernetes_workload},
    {"kubernetes_stateful_set", "stateful_set", nullptr, {}, &kubernetes_workload},
    {"kubernetes_stateful_set_v1", "stateful_set", nullptr, {}, &kubernetes_workload},
    {"kubernetes_daemonset", "daemon_set", nullptr, {}, &kubernetes_workload},
    {"kubernetes_daemon_set_v1", "daemon_set", nullptr, {}, &kubernetes_workload},
    {"helm_release", "helm_release", nullptr, {}, &helm_release},
    {"rediscloud_acl_user", "acl_user", "name", {}, &redis_user},
    {"redis_acl_user", "acl_user", "name", {}, &redis_acl_user, "/linero/redis"},
    {"redisacl_user", "acl_user", "name", {}, &redisacl_user},
};

const Mapping* mapping_of(const std::string& type) {
  for (const auto& mapping : kMappings) {
    if (type == mapping.type) return &mapping;
  }
  return nullptr;
}

bool declares_nothing(const json& value) {
  if (value.is_null() || value.is_structured()) return true;
  return value.is_string() && (value == "" || value == "DEFAULT");
}

bool by_address(const std::string& glob) { return glob.find('.') != std::string::npos; }

/// `provider["registry.opentofu.org/x/postgresql"].eu` by its whole address, `postgresql.eu`, `postgresql` or `eu`.
bool provider_matches(const std::string& glob, const std::string& address) {
  if (glob.empty() || sdk::glob_match(glob, address)) return true;
  const auto quote = address.rfind("\"]");
  const std::string alias = quote == std::string::npos ? address.substr(std::min(address.size(), address.find('.', 9)))
                                                       : address.substr(quote + 2);
  const auto slash = address.rfind('/', quote);
  const std::string type =
      quote == std::string::npos || slash == std::string::npos ? "" : address.substr(slash + 1, quote - slash - 1);
  const std::string name = alias.empty() ? "" : alias.substr(1);
  return (!type.empty() && sdk::glob_match(glob, type + alias)) || (!name.empty() && sdk::glob_match(glob, name));
}

/// `provider["registry.opentofu.org/linero/redis"].eu` → `registry.opentofu.org/linero/redis`, in small letters.
std::string source_of(const std::string& address) {
  const auto begin = address.find('"'), end = address.find('"', begin == std::string::npos ? begin : begin + 1);
  std::string out = end == std::string::npos ? "" : address.substr(begin + 1, end - begin - 1);
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return std::tolower(c); });
  return out;
}

}  // namespace

bool matches(const DeclarationRule& rule, const Instance& instance) {
  if (!instance.deposed.empty()) return false;
  const bool resource = sdk::glob_match(rule.resources, by_address(rule.resources) ? instance.address : instance.type);
  return resource && provider_matches(rule.provider, instance.resource.provider);
}

std::optional<Declaration> declare(const Instance& instance, const DeclarationRule& rule, std::string& why) {
  const Mapping* mapping = mapping_of(instance.type);
  if (mapping == nullptr) {
    why = "driftd does not know what a " + instance.type + " is in backend " + rule.backend;
    return std::nullopt;
  }
  if (mapping->source != nullptr && source_of(instance.resource.provider).find(mapping->source) == std::string::npos) {
    why = "driftd knows a " + instance.type + " only as " + (mapping->source + 1) + " writes it";
    return std::nullopt;
  }
  if (instance.flat) {
    why = "its attributes have the flat form of an older state";
    return std::nullopt;
  }
  const json& typed = instance.tree();
  Declaration out{mapping->kind, mapping->id == nullptr ? "" : text_of(typed, mapping->id)};
  for (const auto& [from, to] : mapping->attributes) {
    const auto found = typed.find(from);
    if (found != typed.end() && !declares_nothing(*found)) out.body[to] = *found;
  }
  if (mapping->special != nullptr && !mapping->special({typed, rule, out, why})) return std::nullopt;
  if (out.id.empty()) {
    why = "it has no name";
    return std::nullopt;
  }
  return out;
}

std::set<std::string> declared_kinds(const DeclarationRule& rule) {
  std::set<std::string> out;
  for (const auto& mapping : kMappings) {
    if (by_address(rule.resources) || sdk::glob_match(rule.resources, mapping.type)) out.insert(mapping.kind);
  }
  return out;
}

}  // namespace driftd::terraform
