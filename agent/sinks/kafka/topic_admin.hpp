// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>

#include "sinks/kafka/client.hpp"

namespace driftd::sinks {

struct TopicShape {
  int partitions = 0, replicas = 0;  ///< replicas: of partition 0
  std::set<std::int32_t> led;        ///< partitions that have a leader
};

struct TopicConfig {
  std::map<std::string, std::string> values;  ///< empty if it cannot be read
  std::string error;                          ///< why not
};

/// Returns the topic's shape. Creates the topic first if it is absent and the settings allow it. [io]
Result<TopicShape> shape_of(const KafkaClient& client, const KafkaSettings& settings);

/// Returns the topic's configuration, which the account may not be allowed to read. [io]
TopicConfig config_of(const KafkaClient& client, const KafkaSettings& settings);

}  // namespace driftd::sinks
