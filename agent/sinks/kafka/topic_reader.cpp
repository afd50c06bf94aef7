// SPDX-License-Identifier: Apache-2.0
#include "sinks/kafka/topic_reader.hpp"

#include <algorithm>
#include <chrono>
#include <vector>

namespace driftd::sinks {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kWait{5'000}, kLeaderWait{4'000}, kBetweenAsks{50};

struct FreeList {
  void operator()(rd_kafka_topic_partition_list_t* l) const { rd_kafka_topic_partition_list_destroy(l); }
};
struct FreeMessage {
  void operator()(rd_kafka_message_t* m) const { rd_kafka_message_destroy(m); }
};

/// Asks for the offset at `end` (RD_KAFKA_OFFSET_BEGINNING or _END; the protocol's times -2 and -1 mean the same) of
/// all partitions in one request to each leader.
std::map<std::int32_t, std::int64_t> ends_of(const KafkaClient& client, const std::set<std::int32_t>& partitions,
                                             std::int64_t end) {
  const std::unique_ptr<rd_kafka_topic_partition_list_t, FreeList> list(
      rd_kafka_topic_partition_list_new(static_cast<int>(partitions.size())));
  for (const auto partition : partitions)
    rd_kafka_topic_partition_list_add(list.get(), rd_kafka_topic_name(client.topic()), partition)->offset = end;
  rd_kafka_offsets_for_times(client.producer(), list.get(), static_cast<int>(kWait.count()));
  std::map<std::int32_t, std::int64_t> out;
  for (int i = 0; i < list->cnt; ++i) {
    const rd_kafka_topic_partition_t& one = list->elems[i];
    if (one.err == RD_KAFKA_RESP_ERR_NO_ERROR && one.offset >= 0) out[one.partition] = one.offset;
  }
  return out;
}

std::string id_of(rd_kafka_message_t* message) {
  rd_kafka_headers_t* headers = nullptr;
  const void* value = nullptr;
  std::size_t size = 0;
  if (rd_kafka_message_headers(message, &headers) != RD_KAFKA_RESP_ERR_NO_ERROR ||
      rd_kafka_header_get_last(headers, kIdHeader, &value, &size) != RD_KAFKA_RESP_ERR_NO_ERROR || value == nullptr)
    return "";
  return std::string(static_cast<const char*>(value), size);
}

/// Reads of several partitions into one queue. They end with the object.
class Reads {
 public:
  Reads(rd_kafka_topic_t* topic, rd_kafka_queue_t* queue) : topic_(topic), queue_(queue) {}
  ~Reads() {
    for (const auto partition : started_) rd_kafka_consume_stop(topic_, partition);
  }
  Reads(const Reads&) = delete;
  Reads& operator=(const Reads&) = delete;
  bool start(std::int32_t partition, std::int64_t offset) {
    if (rd_kafka_consume_start_queue(topic_, partition, offset, queue_) != 0) return false;
    started_.push_back(partition);
    return true;
  }

 private:
  rd_kafka_topic_t* topic_;
  rd_kafka_queue_t* queue_;
  std::vector<std::int32_t> started_;
};

ReadRecord record_at(rd_kafka_message_t* message, std::int64_t wanted) {
  switch (message->err) {
    case RD_KAFKA_RESP_ERR_NO_ERROR:
      if (message->offset == wanted) return {Found::ours, id_of(message)};
      return {Found::not_ours, ""};
    case RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET:
    case RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE:
    case RD_KAFKA_RESP_ERR__PARTITION_EOF:
      return {Found::not_ours, ""};
    case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
      return {Found::unread, ""};
    default:
      return {};
  }
}

}  // namespace

Ranges ranges_of(const KafkaClient& client, const std::set<std::int32_t>& partitions) {
  Ranges out;
  std::set<std::int32_t> left = partitions;
  const auto until = Clock::now() + kLeaderWait;
  // a leader that has just begun, of a new topic for example, does not answer at once
  for (bool again = false; !left.empty() && (!again || Clock::now() < until); again = true) {
    if (again) client.pause(kBetweenAsks);
    const auto begins = ends_of(client, left, RD_KAFKA_OFFSET_BEGINNING);
    const auto ends = ends_of(client, left, RD_KAFKA_OFFSET_END);
    for (const auto& [partition, begin] : begins) {
      const auto end = ends.find(partition);
      if (end == ends.end()) continue;
      out[partition] = {begin, end->second};
      left.erase(partition);
    }
  }
  return out;
}

Result<std::map<std::int32_t, ReadRecord>> read_ids(KafkaClient& client,
                                                    const std::map<std::int32_t, std::int64_t>& offsets) {
  DRIFTD_TRY(rd_kafka_topic_t* const topic, client.reader_topic());
  const Queue queue = client.new_reader_queue();
  std::map<std::int32_t, ReadRecord> out;
  Reads reads(topic, queue.get());
  std::size_t left = 0;
  for (const auto& [partition, offset] : offsets) {
    out[partition] = {};
    if (reads.start(partition, offset)) ++left;
  }
  const auto until = Clock::now() + kWait;
  std::set<std::int32_t> answered;
  while (answered.size() < left) {
    const auto wait = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
    if (wait <= 0) break;
    const std::unique_ptr<rd_kafka_message_t, FreeMessage> message(
        rd_kafka_consume_queue(queue.get(), static_cast<int>(wait)));
    if (!message || offsets.count(message->partition) == 0 || answered.count(message->partition) != 0) continue;
    out[message->partition] = record_at(message.get(), offsets.at(message->partition));
    answered.insert(message->partition);
  }
  return out;
}

}  // namespace driftd::sinks
