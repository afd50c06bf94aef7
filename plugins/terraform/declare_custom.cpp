// SPDX-License-Identifier: Apache-2.0
#include "terraform/declare_custom.hpp"

#include <algorithm>
#include <array>

#include "common/bounded_json.hpp"
#include "common/secret_text.hpp"
#include "terraform/secrets.hpp"

namespace driftd::terraform {
namespace {

using nlohmann::json;

/// A word as Kafka's own tools write it, whatever its case: READ, read → Read. Empty: unknown.
std::string word(const std::string& given, std::initializer_list<const char*> known) {
  const auto plain = [](const std::string& text) {
    std::string out;
    for (const char c : text) {
      if (c != '_') out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    return out;
  };
  for (const char* name : known) {
    if (plain(given) == plain(name)) return name;
  }
  return {};
}

std::string escaped(const std::string& part) {
  std::string out;
  for (const char c : part) out += c == '%' ? std::string("%25") : c == '|' ? std::string("%7C") : std::string(1, c);
  return out;
}

struct AclNames {
  const char *principal, *host, *operation, *permission, *type, *name, *pattern;
};

bool acl(const CustomMapping& of, const AclNames& names) {
  const json& from = of.attributes;
  const std::string principal = text_of(from, names.principal), host = text_of(from, names.host),
                    name = text_of(from, names.name);
  const std::string operation =
      word(text_of(from, names.operation),
           {"All", "Read", "Write", "Create", "Delete", "Alter", "Describe", "ClusterAction", "DescribeConfigs",
            "AlterConfigs", "IdempotentWrite", "CreateTokens", "DescribeTokens", "TwoPhaseCommit"});
  const std::string permission = word(text_of(from, names.permission), {"Allow", "Deny"});
  const std::string type =
      word(text_of(from, names.type), {"Topic", "Group", "Cluster", "TransactionalId", "DelegationToken", "User"});
  const std::string given = text_of(from, names.pattern);
  const std::string pattern = given.empty() ? "Literal" : word(given, {"Literal", "Prefixed"});
  if (principal.empty() || host.empty() || name.empty() || operation.empty() || permission.empty() || type.empty() ||
      pattern.empty()) {
    of.why = "it is no single ACL binding, or one with a word that driftd does not know";
    return false;
  }
  of.out.id = escaped(principal) + "|" + escaped(host) + "|" + operation + "|" + permission + "|" + type + "|" +
              escaped(name) + "|" + pattern;
  of.out.body = {{"principal", principal},   {"host", host},          {"operation", operation},
                 {"permission", permission}, {"resource_type", type}, {"resource_name", name},
                 {"pattern_type", pattern}};
  return true;
}

/// Lists in Kafka's configuration, which our provider shows as such.
json config_value(const std::string& key, const std::string& value) {
  static constexpr std::array<std::string_view, 3> kLists = {"cleanup.policy", "leader.replication.throttled.replicas",
                                                             "follower.replication.throttled.replicas"};
  if (std::find(kLists.begin(), kLists.end(), key) == kLists.end()) return value;
  json out = json::array();
  for (std::size_t at = 0; at <= value.size();) {
    const auto comma = std::min(value.find(',', at), value.size());
    const auto begin = value.find_first_not_of(" \t", at);
    if (begin < comma) out.push_back(value.substr(begin, value.find_last_not_of(" \t", comma - 1) - begin + 1));
    at = comma + 1;
  }
  return out;
}

}  // namespace

const json& member(const json& from, const char* key) {
  static const json kNone;
  const auto found = from.is_object() ? from.find(key) : from.end();
  return from.is_object() && found != from.end() ? *found : kNone;
}

const json& block(const json& from, const char* key) {
  const json& found = member(from, key);
  return found.is_array() && !found.empty() ? found[0] : found;
}

const json& metadata_of(const json& attributes) {
  static const json kNone = json::object();
  const json& metadata = member(attributes, "metadata");
  if (metadata.is_object()) return metadata;
  return metadata.is_array() && !metadata.empty() && metadata[0].is_object() ? metadata[0] : kNone;
}

bool kubernetes_id(const CustomMapping& of) {
  const json& metadata = metadata_of(of.attributes);
  const std::string space = text_of(metadata, "namespace"), name = text_of(metadata, "name");
  if (name.empty()) {
    of.why = "its metadata has no name";
    return false;
  }
  of.out.id = (space.empty() ? "default" : space) + "/" + name;
  return true;
}

bool kafka_config(const CustomMapping& of) {
  const json& config = member(of.attributes, "config");
  for (const auto& [key, value] : config.items()) {
    if (config.is_object() && value.is_string())
      of.out.body["config"][key] = config_value(key, value.get<std::string>());
  }
  return true;
}

bool kafka_acl(const CustomMapping& of) {
  return acl(of, {"acl_principal", "acl_host", "acl_operation", "acl_permission_type", "resource_type", "resource_name",
                  "resource_pattern_type_filter"});
}

bool confluent_acl(const CustomMapping& of) {
  return acl(of, {"principal", "host", "operation", "permission", "resource_type", "resource_name", "pattern_type"});
}

bool kubernetes_data(const CustomMapping& of) {
  const json& data = member(of.attributes, "data");
  for (const auto& [key, value] : data.items()) {
    if (!data.is_object() || !value.is_string()) continue;
    of.out.body["data"][key] = value;
    of.out.sensitive.push_back("data[" + json(key).dump() + "]");
  }
  return kubernetes_id(of);
}

bool kubernetes_config(const CustomMapping& of) {
  const json& data = member(of.attributes, "data");
  for (const auto& [key, value] : data.items()) {
    if (!data.is_object() || !value.is_string()) continue;
    of.out.body["data"][key] = value;
    if (common::holds_secret(value.get_ref<const std::string&>()))
      of.out.sensitive.push_back("data[" + json(key).dump() + "]");
  }
  const json& binary = member(of.attributes, "binary_data");
  if (binary.is_object() && !binary.empty()) of.out.body["binary_data"] = binary;
  return kubernetes_id(of);
}

bool helm_release(const CustomMapping& of) {
  const json& metadata = metadata_of(of.attributes);
  const std::string name = text_of(of.attributes, "name"), space = text_of(of.attributes, "namespace");
  of.out.id = name.empty() ? "" : (space.empty() ? "default" : space) + "/" + name;
  const auto put = [&of](const char* to, const std::string& value) {
    if (!value.empty()) of.out.body[to] = value;
  };
  put("chart", text_of(metadata, "chart"));
  put("app_version", text_of(metadata, "app_version"));
  put("chart_version", text_of(metadata, "version"));
  if (!of.out.body.contains("chart_version")) put("chart_version", text_of(of.attributes, "version"));
  // the values that the release was given, as the provider keeps them; what it hides cannot be compared
  const std::string values = text_of(metadata, "values");
  const auto [given, cut, why] = common::parse_bounded(values);
  if (given.is_object() && !cut && values.find("(sensitive value)") == std::string::npos) {
    of.out.body["values"] = given;
    of.out.sensitive.push_back("values");
  }
  return true;
}

}  // namespace driftd::terraform
