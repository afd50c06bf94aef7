// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace driftd::test {

/// One record of a topic, as a consumer sees it.
struct KafkaReceived {
  std::int32_t partition = 0;
  std::int64_t offset = 0;
  std::int64_t timestamp_ms = 0;  ///< of the producer, since the epoch
  std::string key, value;
  std::map<std::string, std::string> headers;
  std::string header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? "" : found->second;
  }
};

/// Reads a topic from its beginning to its present end, by partition and offset, with a consumer of its own that sees
/// only committed transactions. Returns nothing if there is no such topic. Throws if the brokers do not answer in 30 s.
std::vector<KafkaReceived> topic_contents(const std::string& address, const std::string& topic);

/// Returns the ids (`ce_id`) of the records by subject, in the order of their offsets.
std::map<std::string, std::vector<std::string>> events_of_topic(const std::string& address, const std::string& topic);

/// Returns the first key of which a new event arrived after a later one (`ce_driftseq`). Repetitions do not count, for
/// a consumer skips known ids. Empty if there is none.
std::string key_out_of_order(const std::vector<KafkaReceived>& records);

/// Sends `count` records to each partition by a producer of its own. Returns when the topic has them.
void produce_other_records(const std::string& address, const std::string& topic, int partitions, int count);

}  // namespace driftd::test
