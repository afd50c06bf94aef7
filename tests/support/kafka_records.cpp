// SPDX-License-Identifier: Apache-2.0
#include "support/kafka_records.hpp"

#include <librdkafka/rdkafka.h>
#include <chrono>
#include <memory>
#include <set>
#include <stdexcept>

namespace driftd::test {
namespace {

using Client = std::unique_ptr<rd_kafka_t, decltype(&rd_kafka_destroy)>;
using Topic = std::unique_ptr<rd_kafka_topic_t, decltype(&rd_kafka_topic_destroy)>;
constexpr int kAnswerMs = 10'000;

Client client(rd_kafka_type_t type, const std::string& address,
              const std::vector<std::pair<const char*, const char*>>& more) {
  char error[512];
  rd_kafka_conf_t* conf = rd_kafka_conf_new();
  rd_kafka_conf_set(conf, "bootstrap.servers", address.c_str(), error, sizeof error);
  for (const auto& [name, value] : more) {
    if (rd_kafka_conf_set(conf, name, value, error, sizeof error) != RD_KAFKA_CONF_OK) throw std::runtime_error(error);
  }
  rd_kafka_conf_set_log_cb(conf, [](const rd_kafka_t*, int, const char*, const char*) {});
  Client out(rd_kafka_new(type, conf, error, sizeof error), &rd_kafka_destroy);
  if (!out) throw std::runtime_error(error);
  return out;
}

/// Returns the number of partitions; 0 if there is no such topic.
int partitions_of(rd_kafka_t* reader, rd_kafka_topic_t* topic) {
  const rd_kafka_metadata_t* metadata = nullptr;
  const auto error = rd_kafka_metadata(reader, 0, topic, &metadata, kAnswerMs);
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) throw std::runtime_error(rd_kafka_err2str(error));
  const int out = metadata->topics[0].err == RD_KAFKA_RESP_ERR_NO_ERROR ? metadata->topics[0].partition_cnt : 0;
  rd_kafka_metadata_destroy(metadata);
  return out;
}

KafkaReceived received(rd_kafka_message_t* message) {
  KafkaReceived out{message->partition, message->offset, rd_kafka_message_timestamp(message, nullptr), {}, {}, {}};
  if (message->key != nullptr) out.key.assign(static_cast<const char*>(message->key), message->key_len);
  if (message->payload != nullptr) out.value.assign(static_cast<const char*>(message->payload), message->len);
  rd_kafka_headers_t* headers = nullptr;
  if (rd_kafka_message_headers(message, &headers) != RD_KAFKA_RESP_ERR_NO_ERROR) return out;
  const char* name = nullptr;
  const void* value = nullptr;
  std::size_t size = 0;
  for (std::size_t i = 0; rd_kafka_header_get_all(headers, i, &name, &value, &size) == RD_KAFKA_RESP_ERR_NO_ERROR; ++i)
    out.headers[name].assign(static_cast<const char*>(value), size);
  return out;
}

void read_partition(rd_kafka_topic_t* topic, int partition, std::vector<KafkaReceived>& out) {
  if (rd_kafka_consume_start(topic, partition, RD_KAFKA_OFFSET_BEGINNING) != 0)
    throw std::runtime_error(rd_kafka_err2str(rd_kafka_last_error()));
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  for (bool at_end = false; !at_end;) {
    rd_kafka_message_t* message = rd_kafka_consume(topic, partition, 1'000);
    if (message != nullptr && message->err == RD_KAFKA_RESP_ERR_NO_ERROR) out.push_back(received(message));
    at_end = message != nullptr && message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF;
    const std::string error = message != nullptr ? rd_kafka_err2str(message->err) : "no answer";
    if (message != nullptr) rd_kafka_message_destroy(message);
    if (!at_end && std::chrono::steady_clock::now() > until) throw std::runtime_error(error);
  }
  rd_kafka_consume_stop(topic, partition);
}

}  // namespace

std::vector<KafkaReceived> topic_contents(const std::string& address, const std::string& name) {
  const Client reader =
      client(RD_KAFKA_CONSUMER, address,
             {{"enable.partition.eof", "true"}, {"allow.auto.create.topics", "false"}, {"fetch.wait.max.ms", "20"}});
  const Topic topic(rd_kafka_topic_new(reader.get(), name.c_str(), nullptr), &rd_kafka_topic_destroy);
  std::vector<KafkaReceived> out;
  const int partitions = partitions_of(reader.get(), topic.get());
  for (int p = 0; p < partitions; ++p) read_partition(topic.get(), p, out);
  return out;
}

std::map<std::string, std::vector<std::string>> events_of_topic(const std::string& address, const std::string& topic) {
  std::map<std::string, std::vector<std::string>> out;
  for (const auto& record : topic_contents(address, topic))
    out[record.header("ce_subject")].push_back(record.header("ce_id"));
  return out;
}

std::string key_out_of_order(const std::vector<KafkaReceived>& records) {
  std::set<std::string> known;
  std::map<std::string, long long> last;
  for (const auto& record : records) {
    if (!known.insert(record.header("ce_id")).second) continue;
    const long long sequence = std::stoll(record.header("ce_driftseq"));
    if (sequence < last[record.key]) return record.key;
    last[record.key] = sequence;
  }
  return "";
}

void produce_other_records(const std::string& address, const std::string& name, int partitions, int count) {
  const Client producer = client(RD_KAFKA_PRODUCER, address, {{"acks", "all"}});
  const Topic topic(rd_kafka_topic_new(producer.get(), name.c_str(), nullptr), &rd_kafka_topic_destroy);
  for (int i = 0; i < partitions * count; ++i) {
    char text[] = "of somebody else";
    if (rd_kafka_produce(topic.get(), i % partitions, RD_KAFKA_MSG_F_COPY, text, sizeof text, nullptr, 0, nullptr) != 0)
      throw std::runtime_error(rd_kafka_err2str(rd_kafka_last_error()));
  }
  if (rd_kafka_flush(producer.get(), kAnswerMs) != RD_KAFKA_RESP_ERR_NO_ERROR) throw std::runtime_error("not flushed");
}

}  // namespace driftd::test
