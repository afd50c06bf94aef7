// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "core/event/event.hpp"
#include "sinks/kafka/settings.hpp"

namespace driftd::sinks {

/// One record that carries an event.
struct KafkaRecord {
  std::int32_t partition = 0;
  std::string key, value;
  std::vector<std::pair<std::string, std::string>> headers;
};

/// Returns the record of an event by the CloudEvents Kafka protocol binding: key = the resource's key, and either the
/// protobuf bytes (binary mode) or structured JSON as its value. Both have the attributes as headers `ce_…` (UTF-8), so
/// that a consumer can choose without parsing. Returns `corrupt` if the stored bytes are not an event.
Result<KafkaRecord> record_of(const core::StoredEvent& event, const KafkaSettings& settings);

/// The header that contains the event's id.
inline constexpr const char* kIdHeader = "ce_id";

}  // namespace driftd::sinks
