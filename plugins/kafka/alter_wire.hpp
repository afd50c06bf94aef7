// SPDX-License-Identifier: Apache-2.0
// The request IncrementalAlterConfigs (KIP-339), which librdkafka has only since 2.2. Pure: no I/O.
//
// AlterConfigs, which every librdkafka has, replaces the whole configuration of a resource: what somebody else sets
// between reading and writing is lost. So it is never used.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace driftd::kafka {

enum class ConfigResource : std::int8_t { topic = 2, broker = 4 };

/// One configuration to set, or to take away if it has no value.
struct Alteration {
  std::string name;
  std::optional<std::string> value;
};

/// The configurations of one resource. The broker takes all of them or none.
struct AlterRequest {
  ConfigResource type = ConfigResource::topic;
  std::string name;  ///< of the topic, id of the broker; empty: the defaults of all brokers
  std::vector<Alteration> alterations;
  bool validate_only = true;  ///< the broker checks everything and changes nothing
};

/// What a broker answers: Kafka's error code, 0 if it took the request, and its text.
struct AlterAnswer {
  std::int32_t error = 0;
  std::string text;
};

inline constexpr std::size_t kMaxAlterAnswer = 1 << 20;  ///< bytes; its text may quote a value of 32 KiB

/// Builds version 0 of the request, with its length in front.
std::string alter_request(std::int32_t correlation, const AlterRequest& request);
/// Throws CORRUPT if the answer is not one to `request`.
AlterAnswer parse_alter(std::string_view answer, std::int32_t correlation, const AlterRequest& request);

}  // namespace driftd::kafka
