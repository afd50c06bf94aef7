// SPDX-License-Identifier: Apache-2.0
// librdkafka's handles with their owners.
#pragma once

#include <librdkafka/rdkafka.h>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>

#include "base/result.hpp"
#include "sinks/kafka/encode.hpp"
#include "sinks/kafka/settings.hpp"

namespace driftd::sinks {

struct FreeEvent {
  void operator()(rd_kafka_event_t* e) const { rd_kafka_event_destroy(e); }
};
struct FreeQueue {
  void operator()(rd_kafka_queue_t* q) const { rd_kafka_queue_destroy(q); }
};
struct FreeTopic {
  void operator()(rd_kafka_topic_t* t) const { rd_kafka_topic_destroy(t); }
};
using Event = std::unique_ptr<rd_kafka_event_t, FreeEvent>;
using Queue = std::unique_ptr<rd_kafka_queue_t, FreeQueue>;
using Topic = std::unique_ptr<rd_kafka_topic_t, FreeTopic>;

/// A producer, and a consumer that reads back what the topic has. The library's threads call nothing of ours: delivery
/// reports and errors wait in events(), and wake_fd() becomes readable when there are some.
class KafkaClient {
 public:
  /// Opens the producer, which connects by itself. With a transactional id this also takes over the id, which ends
  /// every other producer that uses it, and blocks up to the connect time-out plus 10 s; [io]. `batch_bytes`: maximum
  /// size of one batch of records. Errors contain no secret.
  static Result<std::shared_ptr<KafkaClient>> open(const KafkaSettings& settings, const std::string& name,
                                                   std::size_t batch_bytes);
  /// Ends what end() did not end, without waiting for it.
  ~KafkaClient();
  KafkaClient(const KafkaClient&) = delete;
  KafkaClient& operator=(const KafkaClient&) = delete;

  /// Ends both handles, in at most one second for each: a thread of the library that hangs in the resolver is left
  /// behind. Nothing else may be called afterwards. [io, while nothing else uses the client]
  void end();

  rd_kafka_t* producer() const { return producer_; }
  rd_kafka_topic_t* topic() const { return topic_.get(); }
  rd_kafka_queue_t* events() const { return events_.get(); }
  int wake_fd() const { return wake_fd_; }
  /// Lets calls that repeat themselves end soon, because the sink stops. Any thread.
  void stop_soon() { stopping_ = true; }
  bool stopping() const { return stopping_; }
  /// Returns the consumer's view of the topic. The consumer is opened by the first call. [io, one thread]
  Result<rd_kafka_topic_t*> reader_topic();
  /// Returns a queue of the consumer, which must be open.
  Queue new_reader_queue() const { return Queue(rd_kafka_queue_new(reader_)); }
  /// Waits for a while, between two questions to brokers. [io]
  void pause(std::chrono::milliseconds wait) const;
  /// Gives a record to the library, which copies it. Its delivery report has `id` as its opaque. Never blocks; any
  /// thread.
  rd_kafka_resp_err_t produce(const KafkaRecord& record, std::uint64_t id) const;
  /// Returns the partition of a key: murmur2 of its bytes, as Java's default partitioner.
  std::int32_t partition_of(const std::string& key, int partitions) const;

 private:
  KafkaClient(KafkaSettings settings, std::string name) : settings_(std::move(settings)), name_(std::move(name)) {}
  Status open_producer(std::size_t batch_bytes);
  Status join_transactions() const;
  void end(std::chrono::milliseconds wait);

  const KafkaSettings settings_;  ///< certificate checks on the library's threads read it
  const std::string name_;
  rd_kafka_t *producer_ = nullptr, *reader_ = nullptr;
  Topic topic_, reader_topic_;
  Queue events_;
  int wake_fd_ = -1;
  std::atomic<bool> stopping_ = false;
};

}  // namespace driftd::sinks
