// SPDX-License-Identifier: Apache-2.0
#include "sinks/kafka/topic_admin.hpp"

#include <chrono>

#include "base/log.hpp"
#include "sinks/kafka/failure_text.hpp"

namespace driftd::sinks {
namespace {

constexpr int kRequestMs = 5'000;
constexpr int kCreateMs = 10'000;
constexpr std::chrono::milliseconds kLookAgain{50};  // between two looks for a topic that was just created
constexpr std::chrono::milliseconds kDefaultRetention{7LL * 86'400'000};

struct FreeMetadata {
  void operator()(const rd_kafka_metadata_t* m) const { rd_kafka_metadata_destroy(m); }
};
struct FreeOptions {
  void operator()(rd_kafka_AdminOptions_t* o) const { rd_kafka_AdminOptions_destroy(o); }
};
struct FreeNewTopic {
  void operator()(rd_kafka_NewTopic_t* t) const { rd_kafka_NewTopic_destroy(t); }
};
struct FreeResource {
  void operator()(rd_kafka_ConfigResource_t* r) const { rd_kafka_ConfigResource_destroy(r); }
};
using Metadata = std::unique_ptr<const rd_kafka_metadata_t, FreeMetadata>;
using Options = std::unique_ptr<rd_kafka_AdminOptions_t, FreeOptions>;

/// The topic's metadata, or why there is none.
struct Look {
  rd_kafka_resp_err_t error = RD_KAFKA_RESP_ERR_NO_ERROR;
  TopicShape shape;
};

Look look_at(const KafkaClient& client) {
  const rd_kafka_metadata_t* raw = nullptr;
  Look out;
  out.error = rd_kafka_metadata(client.producer(), 0, client.topic(), &raw, kRequestMs);
  const Metadata metadata(raw);
  if (out.error != RD_KAFKA_RESP_ERR_NO_ERROR) return out;
  if (raw->topic_cnt != 1) {
    out.error = RD_KAFKA_RESP_ERR__BAD_MSG;
    return out;
  }
  const rd_kafka_metadata_topic& topic = raw->topics[0];
  out.error = topic.err == RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE ? RD_KAFKA_RESP_ERR_NO_ERROR : topic.err;
  out.shape.partitions = topic.partition_cnt;
  for (int i = 0; i < topic.partition_cnt; ++i) {
    const rd_kafka_metadata_partition& partition = topic.partitions[i];
    if (partition.leader >= 0) out.shape.led.insert(partition.id);
    if (partition.id == 0) out.shape.replicas = partition.replica_cnt;
  }
  return out;
}

Options options_for(const KafkaClient& client, rd_kafka_admin_op_t what, int wait_ms) {
  Options out(rd_kafka_AdminOptions_new(client.producer(), what));
  char ignored[kErrorTextBytes];  // only a time-out out of range is refused
  rd_kafka_AdminOptions_set_request_timeout(out.get(), wait_ms, ignored, sizeof ignored);
  return out;
}

Status create(const KafkaClient& client, const KafkaSettings& settings) {
  char error[kErrorTextBytes];
  const std::unique_ptr<rd_kafka_NewTopic_t, FreeNewTopic> topic(
      rd_kafka_NewTopic_new(settings.topic.c_str(), settings.partitions.value_or(-1),
                            settings.replication_factor.value_or(-1), error, sizeof error));
  if (!topic) return fail(Code::invalid, "Kafka: topic '" + settings.topic + "': " + error);
  const std::string retention = std::to_string(settings.retention.value_or(kDefaultRetention).count());
  rd_kafka_NewTopic_set_config(topic.get(), "retention.ms", retention.c_str());
  rd_kafka_NewTopic_set_config(topic.get(), "cleanup.policy", "delete");
  const Options options = options_for(client, RD_KAFKA_ADMIN_OP_CREATETOPICS, kCreateMs);
  rd_kafka_AdminOptions_set_operation_timeout(options.get(), kCreateMs, error, sizeof error);
  const Queue queue(rd_kafka_queue_new(client.producer()));
  rd_kafka_NewTopic_t* topics[] = {topic.get()};
  rd_kafka_CreateTopics(client.producer(), topics, 1, options.get(), queue.get());
  const Event event(rd_kafka_queue_poll(queue.get(), 2 * kCreateMs));
  if (!event) return fail(failure(RD_KAFKA_RESP_ERR__TIMED_OUT, "its creation was not answered", settings));
  if (rd_kafka_event_error(event.get()) != RD_KAFKA_RESP_ERR_NO_ERROR)
    return fail(failure(rd_kafka_event_error(event.get()), rd_kafka_event_error_string(event.get()), settings));
  std::size_t count = 0;
  const auto* results = rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event.get()), &count);
  const auto code = count == 1 ? rd_kafka_topic_result_error(results[0]) : RD_KAFKA_RESP_ERR__BAD_MSG;
  if (code == RD_KAFKA_RESP_ERR_NO_ERROR || code == RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS) {
    log::room("delivery").info("Kafka topic {} was created", settings.topic);
    return {};
  }
  const char* text = count == 1 ? rd_kafka_topic_result_error_string(results[0]) : nullptr;
  return fail(failure(
      code, "it is absent and cannot be created: " + std::string(text != nullptr ? text : rd_kafka_err2str(code)),
      settings));
}

}  // namespace

Result<TopicShape> shape_of(const KafkaClient& client, const KafkaSettings& settings) {
  Look look = look_at(client);
  const auto absent = [&look] { return look.error == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART; };
  if (absent() && settings.create_topic) {
    DRIFTD_CHECK(create(client, settings));
    // brokers learn of a new topic one after the other
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(kRequestMs);
    const auto ready = [&look] {
      return look.error == RD_KAFKA_RESP_ERR_NO_ERROR &&
             look.shape.led.size() == static_cast<std::size_t>(look.shape.partitions);
    };
    for (look = look_at(client); !ready() && std::chrono::steady_clock::now() < until; look = look_at(client))
      client.pause(kLookAgain);
  }
  if (look.error == RD_KAFKA_RESP_ERR_NO_ERROR && look.shape.partitions > 0) return look.shape;
  return fail(failure(look.error == RD_KAFKA_RESP_ERR_NO_ERROR ? RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART : look.error,
                      "", settings));
}

TopicConfig config_of(const KafkaClient& client, const KafkaSettings& settings) {
  const std::unique_ptr<rd_kafka_ConfigResource_t, FreeResource> resource(
      rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, settings.topic.c_str()));
  const Options options = options_for(client, RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS, kRequestMs);
  const Queue queue(rd_kafka_queue_new(client.producer()));
  rd_kafka_ConfigResource_t* resources[] = {resource.get()};
  rd_kafka_DescribeConfigs(client.producer(), resources, 1, options.get(), queue.get());
  const Event event(rd_kafka_queue_poll(queue.get(), 2 * kRequestMs));
  if (!event) return {{}, "no answer"};
  if (rd_kafka_event_error(event.get()) != RD_KAFKA_RESP_ERR_NO_ERROR)
    return {{}, shown(rd_kafka_event_error_string(event.get()), settings)};
  std::size_t count = 0;
  const auto* results =
      rd_kafka_DescribeConfigs_result_resources(rd_kafka_event_DescribeConfigs_result(event.get()), &count);
  if (count != 1) return {{}, "the answer has no configuration"};
  if (const auto code = rd_kafka_ConfigResource_error(results[0]); code != RD_KAFKA_RESP_ERR_NO_ERROR) {
    const bool denied = code == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED;
    return {{}, denied ? "grant DESCRIBE_CONFIGS on it" : rd_kafka_err2str(code)};
  }
  TopicConfig out;
  std::size_t entries = 0;
  const auto* list = rd_kafka_ConfigResource_configs(results[0], &entries);
  for (std::size_t i = 0; i < entries; ++i) {
    const char* value = rd_kafka_ConfigEntry_value(list[i]);
    out.values[rd_kafka_ConfigEntry_name(list[i])] = value == nullptr ? "" : value;
  }
  return out;
}

}  // namespace driftd::sinks
