// SPDX-License-Identifier: Apache-2.0
#include "terraform/declare_special.hpp"

#include <algorithm>
#include <array>
#include <openssl/evp.h>

#include "common/secret_text.hpp"
#include "terraform/document.hpp"
#include "terraform/secrets.hpp"

namespace driftd::terraform {
namespace {

using nlohmann::json;

const json& member(const json& from, const char* key) {
  static const json kNone;
  const auto found = from.is_object() ? from.find(key) : from.end();
  return from.is_object() && found != from.end() ? *found : kNone;
}

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

bool acl(const Special& of, const AclNames& names) {
  const json& from = of.attributes;
  const std::string principal = text_of(from, names.principal), host = text_of(from, names.host), name = text_of(from, names.name);
  const std::string operation = word(text_of(from, names.operation),
                                     {"All", "Read", "Write", "Create", "Delete", "Alter", "Describe", "ClusterAction", "DescribeConfigs",
                                      "AlterConfigs", "IdempotentWrite", "CreateTokens", "DescribeTokens", "TwoPhaseCommit"});
  const std::string permission = word(text_of(from, names.permission), {"Allow", "Deny"});
  const std::string type = word(text_of(from, names.type), {"Topic", "Group", "Cluster", "TransactionalId", "DelegationToken", "User"});
  const std::string given = text_of(from, names.pattern);
  const std::string pattern = given.empty() ? "Literal" : word(given, {"Literal", "Prefixed"});
  if (principal.empty() || host.empty() || name.empty() || operation.empty() || permission.empty() || type.empty() || pattern.empty()) {
    of.why = "it is no single ACL binding, or one with a word that driftd does not know";
    return false;
  }
  of.out.id = escaped(principal) + "|" + escaped(host) + "|" + operation + "|" + permission + "|" + type + "|" + escaped(name) + "|" + pattern;
  of.out.body = {{"principal", principal}, {"host", host},          {"operation", operation},  {"permission", permission},
                 {"resource_type", type},  {"resource_name", name}, {"pattern_type", pattern}};
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

/// `2030-01-01 00:00:00+00` as our provider shows it: `2030-01-01T00:00:00.000000Z`. Another zone or form: empty.
std::string utc(const std::string& text) {
  const std::string tail = text.size() > 19 ? text.substr(19) : "";
  const bool form = text.size() >= 19 && text[4] == '-' && (text[10] == ' ' || text[10] == 'T') && text[13] == ':';
  if (!form || (tail != "+00" && tail != "Z" && tail != "+00:00")) return {};
  return text.substr(0, 10) + "T" + text.substr(11, 8) + ".000000Z";
}

bool kubernetes_id(const Special& of) {
  const json& metadata = metadata_of(of.attributes);
  const std::string space = text_of(metadata, "namespace"), name = text_of(metadata, "name");
  if (name.empty()) {
    of.why = "its metadata has no name";
    return false;
  }
  of.out.id = (space.empty() ? "default" : space) + "/" + name;
  return true;
}

}  // namespace

const json& metadata_of(const json& attributes) {
  static const json kNone = json::object();
  const json& metadata = member(attributes, "metadata");
  if (metadata.is_object()) return metadata;
  return metadata.is_array() && !metadata.empty() && metadata[0].is_object() ? metadata[0] : kNone;
}

bool postgres_role(const Special& of) {
  // "infinity" is also what the provider writes for a role that has no limit at all
  if (const std::string until = utc(text_of(of.attributes, "valid_until")); !until.empty()) of.out.body["valid_until"] = until;
  for (const char* setting : {"statement_timeout", "idle_in_transaction_session_timeout"}) {
    const json& value = member(of.attributes, setting);
    if (value.is_number_integer() && value != 0) of.out.body["settings"][setting] = value.dump();
  }
  if (const std::string role = text_of(of.attributes, "assume_role"); !role.empty()) of.out.body["settings"]["role"] = role;
  return true;
}

bool in_database(const Special& of) {
  const std::string database = text_of(of.attributes, "database"), name = text_of(of.attributes, "name");
  if (of.rule.database.empty()) {
    of.why = "driftd sees extensions and schemas of some databases: name them in declares[].database";
    return false;
  }
  if (!sdk::glob_match(of.rule.database, database)) {
    of.why.clear();  // of another database than the rule speaks of: nothing is amiss
    return false;
  }
  of.out.id = name.empty() ? "" : database + "." + name;
  return true;
}

bool kafka_config(const Special& of) {
  const json& config = member(of.attributes, "config");
  for (const auto& [key, value] : config.items()) {
    if (config.is_object() && value.is_string()) of.out.body["config"][key] = config_value(key, value.get<std::string>());
  }
  return true;
}

bool kafka_acl(const Special& of) {
  return acl(of, {"acl_principal", "acl_host", "acl_operation", "acl_permission_type", "resource_type", "resource_name",
                  "resource_pattern_type_filter"});
}

bool confluent_acl(const Special& of) {
  return acl(of, {"principal", "host", "operation", "permission", "resource_type", "resource_name", "pattern_type"});
}

bool kubernetes_data(const Special& of) {
  const json& data = member(of.attributes, "data");
  for (const auto& [key, value] : data.items()) {
    if (!data.is_object() || !value.is_string()) continue;
    of.out.body["data"][key] = value;
    of.out.sensitive.push_back("data[" + json(key).dump() + "]");
  }
  return kubernetes_id(of);
}

bool kubernetes_config(const Special& of) {
  const json& data = member(of.attributes, "data");
  for (const auto& [key, value] : data.items()) {
    if (!data.is_object() || !value.is_string()) continue;
    of.out.body["data"][key] = value;
    if (common::holds_secret(value.get_ref<const std::string&>())) of.out.sensitive.push_back("data[" + json(key).dump() + "]");
  }
  const json& binary = member(of.attributes, "binary_data");
  if (binary.is_object() && !binary.empty()) of.out.body["binary_data"] = binary;
  return kubernetes_id(of);
}

bool helm_release(const Special& of) {
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
  const json given = json::parse(values, nullptr, false);
  if (given.is_object() && values.find("(sensitive value)") == std::string::npos) {
    of.out.body["values"] = given;
    of.out.sensitive.push_back("values");
  }
  return true;
}

bool redis_user(const Special& of) {
  std::string password = text_of(of.attributes, "password");
  if (password.empty()) return true;
  unsigned char sum[EVP_MAX_MD_SIZE];
  EVP_Digest(password.data(), password.size(), sum, nullptr, EVP_sha256(), nullptr);
  explicit_bzero(password.data(), password.size());
  std::string hex;
  for (int i = 0; i < 32; ++i) {
    hex += "0123456789abcdef"[sum[i] >> 4];
    hex += "0123456789abcdef"[sum[i] & 15];
  }
  of.out.body["passwords"] = json::array({hex});  // as ACL LIST shows it
  of.out.sensitive.push_back("passwords");
  return true;
}

}  // namespace driftd::terraform
