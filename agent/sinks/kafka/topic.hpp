// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "sinks/common/marks.hpp"
#include "sinks/kafka/client.hpp"

namespace driftd::sinks {

/// What was known about the topic before it is checked.
struct KnownTopic {
  std::map<std::int32_t, Marks> marks;  ///< by partition; Position::stream_seq is the offset + 1
  std::string topic;                    ///< the topic that the marks are about; empty: none yet
  unsigned checks = 0;                  ///< number of checks so far; selects the sample of older marks
};

struct TopicLoss {
  std::map<std::int32_t, std::size_t> marks_kept;  ///< lossy partitions: this many of the oldest marks still hold
  std::int64_t rewind_to = 0;
};

struct TopicInspection {
  int partitions = 0;
  std::set<std::int32_t> trusted;               ///< partitions that have a leader and were checked
  std::optional<std::int64_t> max_batch_bytes;  ///< the topic's max.message.bytes, if it may be read
  std::optional<TopicLoss> loss;                ///< set if the topic lost records that it had acknowledged
  std::string warnings;  ///< what differs from the settings or cannot be checked; empty if nothing
};

/// Creates the topic if it is absent, compares it with the settings, and checks whether it lost records: it ends before
/// a record of ours, or has another record at the position of our last one or of a sample of older ones. Records that
/// left the topic at its beginning (retention) are no loss. Blocks, up to some 30 s with brokers that do not answer;
/// [io].
Result<TopicInspection> inspect(KafkaClient& client, const KafkaSettings& settings, const KnownTopic& memory);

/// Waits until a broker answers, for `wait_ms` at most. Returns true if one did. [io]
bool answers(const KafkaClient& client, int wait_ms);

}  // namespace driftd::sinks
