// SPDX-License-Identifier: Apache-2.0
#include "kafka/admin.hpp"

#include <array>

namespace driftd::kafka {
namespace {

template <std::size_t N>
std::string word(const std::array<const char*, N>& words, int code) {
  return code >= 0 && static_cast<std::size_t>(code) < N ? words[static_cast<std::size_t>(code)] : "Unknown";
}

// The protocol's codes in the words of kafka-acls.sh; librdkafka 2.0 has no names of its own for the later ones.
constexpr std::array<const char*, 8> kTypes{"Unknown",         "Any", "Topic", "Group", "Cluster", "TransactionalId",
                                            "DelegationToken", "User"};
constexpr std::array<const char*, 5> kPatterns{"Unknown", "Any", "Match", "Literal", "Prefixed"};
constexpr std::array<const char*, 16> kOperations{"Unknown",
                                                  "Any",
                                                  "All",
                                                  "Read",
                                                  "Write",
                                                  "Create",
                                                  "Delete",
                                                  "Alter",
                                                  "Describe",
                                                  "ClusterAction",
                                                  "DescribeConfigs",
                                                  "AlterConfigs",
                                                  "IdempotentWrite",
                                                  "CreateTokens",
                                                  "DescribeTokens",
                                                  "TwoPhaseCommit"};
constexpr std::array<const char*, 4> kPermissions{"Unknown", "Any", "Deny", "Allow"};

Source source_of(rd_kafka_ConfigSource_t source) {
  switch (source) {
    case RD_KAFKA_CONFIG_SOURCE_UNKNOWN_CONFIG:
      return Source::unknown;
    case RD_KAFKA_CONFIG_SOURCE_DYNAMIC_TOPIC_CONFIG:
      return Source::topic;
    case RD_KAFKA_CONFIG_SOURCE_DYNAMIC_BROKER_CONFIG:
      return Source::broker;
    case RD_KAFKA_CONFIG_SOURCE_DYNAMIC_DEFAULT_BROKER_CONFIG:
      return Source::broker_default;
    case RD_KAFKA_CONFIG_SOURCE_STATIC_BROKER_CONFIG:
      return Source::fixed;
    case RD_KAFKA_CONFIG_SOURCE_DEFAULT_CONFIG:
      return Source::builtin;
    default:
      return Source::other;
  }
}

ConfigEntry read_entry(const rd_kafka_ConfigEntry_t& from) {
  ConfigEntry out;
  out.name = rd_kafka_ConfigEntry_name(&from);
  if (const char* value = rd_kafka_ConfigEntry_value(&from)) out.value = value;
  out.source = source_of(rd_kafka_ConfigEntry_source(&from));
  out.sensitive = rd_kafka_ConfigEntry_is_sensitive(&from) == 1;
  if (rd_kafka_ConfigEntry_is_synonym(&from) == 1) return out;
  std::size_t count = 0;
  const rd_kafka_ConfigEntry_t** synonyms = rd_kafka_ConfigEntry_synonyms(&from, &count);
  for (std::size_t i = 0; i < count; ++i) out.synonyms.push_back(read_entry(*synonyms[i]));
  return out;
}

std::string text(const char* from) { return from == nullptr ? std::string() : std::string(from); }

}  // namespace

Options::Options(const Handle& handle, rd_kafka_admin_op_t op, std::chrono::milliseconds request)
    : options_(rd_kafka_AdminOptions_new(handle.get(), op), &rd_kafka_AdminOptions_destroy) {
  char error[256];
  rd_kafka_AdminOptions_set_request_timeout(options_.get(), static_cast<int>(request.count()), error, sizeof error);
}

Resources::Resources(rd_kafka_ResourceType_t type, const std::vector<std::string>& names) {
  for (const auto& name : names) resources_.push_back(rd_kafka_ConfigResource_new(type, name.c_str()));
}
Resources::~Resources() { rd_kafka_ConfigResource_destroy_array(resources_.data(), resources_.size()); }

AclFilter::AclFilter()
    : filter_(
          rd_kafka_AclBindingFilter_new(RD_KAFKA_RESOURCE_ANY, nullptr, RD_KAFKA_RESOURCE_PATTERN_ANY, nullptr, nullptr,
                                        RD_KAFKA_ACL_OPERATION_ANY, RD_KAFKA_ACL_PERMISSION_TYPE_ANY, nullptr, 0),
          &rd_kafka_AclBinding_destroy) {}

std::map<std::string, Configs> read_configs(const rd_kafka_DescribeConfigs_result_t& result) {
  std::size_t count = 0;
  const rd_kafka_ConfigResource_t** resources = rd_kafka_DescribeConfigs_result_resources(&result, &count);
  std::map<std::string, Configs> out;
  for (std::size_t i = 0; i < count; ++i) {
    Configs one{
        rd_kafka_ConfigResource_name(resources[i]),
        outcome_of(rd_kafka_ConfigResource_error(resources[i]), rd_kafka_ConfigResource_error_string(resources[i])),
        {}};
    std::size_t entries = 0;
    const rd_kafka_ConfigEntry_t** all = rd_kafka_ConfigResource_configs(resources[i], &entries);
    for (std::size_t e = 0; e < entries; ++e) one.entries.push_back(read_entry(*all[e]));
    out.emplace(one.name, std::move(one));
  }
  return out;
}

std::vector<Acl> read_acls(const rd_kafka_DescribeAcls_result_t& result) {
  std::size_t count = 0;
  const rd_kafka_AclBinding_t** bindings = rd_kafka_DescribeAcls_result_acls(&result, &count);
  std::vector<Acl> out;
  for (std::size_t i = 0; i < count; ++i) {
    const rd_kafka_AclBinding_t* from = bindings[i];
    out.push_back({text(rd_kafka_AclBinding_principal(from)), text(rd_kafka_AclBinding_host(from)),
                   word(kOperations, rd_kafka_AclBinding_operation(from)),
                   word(kPermissions, rd_kafka_AclBinding_permission_type(from)),
                   word(kTypes, rd_kafka_AclBinding_restype(from)), text(rd_kafka_AclBinding_name(from)),
                   word(kPatterns, rd_kafka_AclBinding_resource_pattern_type(from))});
  }
  return out;
}

Groups read_groups(const rd_kafka_ListConsumerGroups_result_t& result) {
  Groups out;
  std::size_t count = 0;
  const rd_kafka_ConsumerGroupListing_t** valid = rd_kafka_ListConsumerGroups_result_valid(&result, &count);
  for (std::size_t i = 0; i < count; ++i) {
    out.groups.push_back({rd_kafka_ConsumerGroupListing_group_id(valid[i]),
                          rd_kafka_consumer_group_state_name(rd_kafka_ConsumerGroupListing_state(valid[i])),
                          rd_kafka_ConsumerGroupListing_is_simple_consumer_group(valid[i]) != 0});
  }
  const rd_kafka_error_t** errors = rd_kafka_ListConsumerGroups_result_errors(&result, &count);
  if (count > 0) out.outcome = outcome_of(rd_kafka_error_code(errors[0]), rd_kafka_error_string(errors[0]));
  return out;
}

#if RD_KAFKA_VERSION >= 0x020300ff
std::map<std::string, std::string> read_topic_ids(const rd_kafka_DescribeTopics_result_t& result) {
  std::map<std::string, std::string> out;
  std::size_t count = 0;
  const rd_kafka_TopicDescription_t** topics = rd_kafka_DescribeTopics_result_topics(&result, &count);
  for (std::size_t i = 0; i < count; ++i) {
    if (rd_kafka_error_code(rd_kafka_TopicDescription_error(topics[i])) != RD_KAFKA_RESP_ERR_NO_ERROR) continue;
    const rd_kafka_Uuid_t* id = rd_kafka_TopicDescription_topic_id(topics[i]);
    const bool zero = rd_kafka_Uuid_most_significant_bits(id) == 0 && rd_kafka_Uuid_least_significant_bits(id) == 0;
    // brokers before 2.8 have none
    if (!zero) out[rd_kafka_TopicDescription_name(topics[i])] = rd_kafka_Uuid_base64str(id);
  }
  return out;
}
#endif

#if RD_KAFKA_VERSION >= 0x020200ff
ScramUsers read_scram_users(const rd_kafka_DescribeUserScramCredentials_result_t& result) {
  ScramUsers out;
  std::size_t count = 0;
  const auto** users = rd_kafka_DescribeUserScramCredentials_result_descriptions(&result, &count);
  for (std::size_t i = 0; i < count; ++i) {
    const rd_kafka_error_t* error = rd_kafka_UserScramCredentialsDescription_error(users[i]);
    const auto code = rd_kafka_error_code(error);
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
      out.outcome = outcome_of(code, rd_kafka_error_string(error));
      continue;
    }
    ScramUser user{rd_kafka_UserScramCredentialsDescription_user(users[i]), {}};
    const auto have = rd_kafka_UserScramCredentialsDescription_scramcredentialinfo_count(users[i]);
    for (std::size_t m = 0; m < have; ++m) {
      const auto* info = rd_kafka_UserScramCredentialsDescription_scramcredentialinfo(users[i], m);
      const int mechanism = rd_kafka_ScramCredentialInfo_mechanism(info);
      user.iterations[mechanism == 1   ? "SCRAM-SHA-256"
                      : mechanism == 2 ? "SCRAM-SHA-512"
                                       : "Unknown"] = rd_kafka_ScramCredentialInfo_iterations(info);
    }
    out.users.push_back(std::move(user));
  }
  return out;
}
#endif

}  // namespace driftd::kafka
