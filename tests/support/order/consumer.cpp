// SPDX-License-Identifier: Apache-2.0
// The program of the discovery RFC's Appendix B: it knows its slots, and nothing of its backends but what the
// environment says. Every 200 ms it writes to Redis and produces to Kafka, and prints what failed, or how many rounds
// went well.
#include <hiredis/hiredis.h>
#include <librdkafka/rdkafka.h>

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <mutex>
#include <string>

namespace {

volatile std::sig_atomic_t ended = 0;

std::string env(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string() : value;
}

struct Redis {
  redisContext* context = nullptr;
  ~Redis() {
    if (context != nullptr) redisFree(context);
  }
  /// Empty: it worked.
  std::string call(const char* command, const std::string& word) {
    auto* reply = static_cast<redisReply*>(redisCommand(context, command, word.c_str()));
    const std::string out = reply == nullptr ? context->errstr : reply->type == REDIS_REPLY_ERROR ? reply->str : "";
    if (reply != nullptr) freeReplyObject(reply);
    return out;
  }
};

std::string connect(Redis& redis) {
  const std::string host = env("STATE_STORE_HOST"), port = env("STATE_STORE_PORT");
  std::cout << "[INFO] Connecting to Redis at " << host << ":" << port << std::endl;
  redis.context = redisConnect(host.c_str(), std::atoi(port.c_str()));
  if (redis.context == nullptr || redis.context->err != 0) return "no connection";
  return redis.call("AUTH %s", env("STATE_STORE_PASSWORD"));
}

struct Kafka {
  rd_kafka_t* producer = nullptr;
  int lost = 0;  ///< messages that were not delivered
  ~Kafka() {
    if (producer != nullptr) rd_kafka_destroy(producer);
  }
};

void note_delivery(rd_kafka_t*, const rd_kafka_message_t* message, void* kafka) {
  if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR) ++static_cast<Kafka*>(kafka)->lost;
}

std::string produce(Kafka& kafka) {
  char order[] = "order";
  const auto error =
      rd_kafka_producev(kafka.producer, RD_KAFKA_V_TOPIC("orders"), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
                        RD_KAFKA_V_VALUE(order, 5), RD_KAFKA_V_END);
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) return rd_kafka_err2str(error);
  const auto flushed = rd_kafka_flush(kafka.producer, 10'000);
  if (flushed != RD_KAFKA_RESP_ERR_NO_ERROR) return rd_kafka_err2str(flushed);
  return kafka.lost == 0 ? "" : "a message was not delivered";
}

std::string connect(Kafka& kafka) {
  const std::string brokers = env("MESSAGE_SOURCE_ENDPOINT");
  std::cout << "[INFO] Connecting to Kafka at " << brokers << std::endl;
  char fault[512] = {};
  rd_kafka_conf_t* conf = rd_kafka_conf_new();
  rd_kafka_conf_set(conf, "bootstrap.servers", brokers.c_str(), fault, sizeof fault);
  rd_kafka_conf_set_opaque(conf, &kafka);
  rd_kafka_conf_set_dr_msg_cb(conf, note_delivery);
  kafka.producer = rd_kafka_new(RD_KAFKA_PRODUCER, conf, fault, sizeof fault);
  return kafka.producer == nullptr ? fault : produce(kafka);
}

}  // namespace

int main() {
  std::signal(SIGTERM, [](int) { ended = 1; });
  std::cout << "[INFO] Starting consumer pattern runner\n[INFO] Fetching backend config for message_source: "
            << env("MESSAGE_SOURCE_BACKEND") << std::endl;
  Kafka kafka;
  if (const std::string fault = connect(kafka); !fault.empty()) {
    std::cout << "[ERROR] Kafka: " << fault << std::endl;
    return 1;
  }
  std::cout << "[INFO] Fetching backend config for state_store: " << env("STATE_STORE_BACKEND") << std::endl;
  Redis redis;
  if (const std::string fault = connect(redis); !fault.empty()) {
    std::cout << "[ERROR] Redis: " << fault << std::endl;
    return 1;
  }
  std::cout << "[INFO] All backends connected\n[INFO] Starting message consumption..." << std::endl;
  std::mutex mutex;
  std::condition_variable never;
  std::unique_lock lock(mutex);
  for (int round = 1; ended == 0; ++round) {
    const std::string stored = redis.call("SET order %s", std::to_string(round)), sent = produce(kafka);
    if (stored.empty() && sent.empty()) {
      std::cout << "[INFO] round " << round << std::endl;
    } else {
      std::cout << "[ERROR] operation failed: " << stored << " " << sent << std::endl;
    }
    never.wait_for(lock, std::chrono::milliseconds(200));
  }
  std::cout << "[INFO] ended" << std::endl;
  return 0;
}
