// SPDX-License-Identifier: Apache-2.0
// Wrappers for the admin API of librdkafka: owning types for its requests, plain values for its answers.
#pragma once

#include <librdkafka/rdkafka.h>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kafka/handle.hpp"
#include "kafka/model.hpp"

namespace driftd::kafka {

/// Options of one admin request: its time-outs.
class Options {
 public:
  /// `request`: how long the brokers may take. The handle must outlive it.
  Options(const Handle& handle, rd_kafka_admin_op_t op, std::chrono::milliseconds request);
  rd_kafka_AdminOptions_t* get() const { return options_.get(); }  ///< borrowed

 private:
  std::unique_ptr<rd_kafka_AdminOptions_t, decltype(&rd_kafka_AdminOptions_destroy)> options_;
};

/// Topics or brokers by name.
class Resources {
 public:
  Resources(rd_kafka_ResourceType_t type, const std::vector<std::string>& names);
  ~Resources();
  Resources(const Resources&) = delete;
  Resources& operator=(const Resources&) = delete;
  /// Returns size() pointers, which are borrowed.
  rd_kafka_ConfigResource_t** get() const { return const_cast<rd_kafka_ConfigResource_t**>(resources_.data()); }
  std::size_t size() const { return resources_.size(); }

 private:
  std::vector<rd_kafka_ConfigResource_t*> resources_;  ///< owned
};

/// A filter that matches every binding.
class AclFilter {
 public:
  AclFilter();
  rd_kafka_AclBindingFilter_t* get() const { return filter_.get(); }

 private:
  std::unique_ptr<rd_kafka_AclBindingFilter_t, decltype(&rd_kafka_AclBinding_destroy)> filter_;
};

/// Returns the configuration of each resource by its name.
std::map<std::string, Configs> read_configs(const rd_kafka_DescribeConfigs_result_t& result);
/// Returns the bindings; types, operations, permissions and patterns that the library does not know become `Unknown`.
std::vector<Acl> read_acls(const rd_kafka_DescribeAcls_result_t& result);
/// Returns the groups; the outcome is not OK if a broker did not answer.
Groups read_groups(const rd_kafka_ListConsumerGroups_result_t& result);
#if RD_KAFKA_VERSION >= 0x020300ff
/// Returns the id of each topic by its name. Topics with an error are left out, and all of them by a broker before 2.8.
std::map<std::string, std::string> read_topic_ids(const rd_kafka_DescribeTopics_result_t& result);
#endif
#if RD_KAFKA_VERSION >= 0x020200ff
ScramUsers read_scram_users(const rd_kafka_DescribeUserScramCredentials_result_t& result);
#endif

}  // namespace driftd::kafka
