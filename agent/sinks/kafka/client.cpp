// SPDX-License-Identifier: Apache-2.0
#include "sinks/kafka/client.hpp"

#include <sys/eventfd.h>
#include <unistd.h>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "sinks/kafka/conf.hpp"
#include "sinks/kafka/failure_text.hpp"

namespace driftd::sinks {
namespace {

constexpr std::chrono::seconds kMaxDestroy{1};
constexpr int kJoinMs = 10'000;

/// Ends a client, and waits for that for a while. A thread of the library may hang in the resolver, so the thread that
/// waits for it owns everything that it may still use.
void destroy(rd_kafka_t* client, int fd, std::chrono::milliseconds wait) {
  if (client == nullptr) return;
  struct End {
    std::mutex mutex;
    std::condition_variable ended;
    bool done = false;
  };
  const auto end = std::make_shared<End>();
  std::thread([end, client, fd] {
    rd_kafka_destroy_flags(client, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
    if (fd >= 0) ::close(fd);
    const std::lock_guard lock(end->mutex);
    end->done = true;
    end->ended.notify_all();
  }).detach();
  std::unique_lock lock(end->mutex);
  end->ended.wait_for(lock, wait, [&] { return end->done; });
}

}  // namespace

Result<std::shared_ptr<KafkaClient>> KafkaClient::open(const KafkaSettings& settings, const std::string& name,
                                                       std::size_t batch_bytes) {
  std::shared_ptr<KafkaClient> out(new KafkaClient(settings, name));
  DRIFTD_CHECK(out->open_producer(batch_bytes));
  if (!settings.transactional_id.empty()) DRIFTD_CHECK(out->join_transactions());
  return out;
}

Status KafkaClient::open_producer(std::size_t batch_bytes) {
  DRIFTD_TRY(Conf conf, producer_conf(settings_, name_, batch_bytes));
  wake_fd_ = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (wake_fd_ < 0) return fail(Code::unavailable, "Kafka: no event descriptor: too many open files?");
  char error[kErrorTextBytes];
  producer_ = rd_kafka_new(RD_KAFKA_PRODUCER, conf.get(), error, sizeof error);
  if (producer_ == nullptr) return fail(Code::invalid, "Kafka settings: " + shown(error, settings_));
  static_cast<void>(conf.release());  // the client's now
  events_.reset(rd_kafka_queue_get_main(producer_));
  const std::uint64_t one = 1;
  rd_kafka_queue_io_event_enable(events_.get(), wake_fd_, &one, sizeof one);
  topic_.reset(rd_kafka_topic_new(producer_, settings_.topic.c_str(), nullptr));
  if (topic_ == nullptr) {
    return fail(Code::invalid, "Kafka: topic '" + settings_.topic + "': " + rd_kafka_err2str(rd_kafka_last_error()));
  }
  return {};
}

Status KafkaClient::join_transactions() const {
  const int wait = static_cast<int>(settings_.connect_timeout.count()) + kJoinMs;
  const std::unique_ptr<rd_kafka_error_t, decltype(&rd_kafka_error_destroy)> error(
      rd_kafka_init_transactions(producer_, wait), &rd_kafka_error_destroy);
  if (error == nullptr) return {};
  const rd_kafka_resp_err_t code = rd_kafka_error_code(error.get());
  if (code != RD_KAFKA_RESP_ERR__TIMED_OUT) return fail(failure(code, rd_kafka_error_string(error.get()), settings_));
  return fail(failure(code,
                      "no transaction coordinator answered within " + std::to_string(wait) +
                          " ms: are there as many brokers as transaction.state.log.replication.factor (3) wants?",
                      settings_));
}

KafkaClient::~KafkaClient() { end(std::chrono::milliseconds(0)); }

void KafkaClient::end() { end(kMaxDestroy); }

void KafkaClient::end(std::chrono::milliseconds wait) {
  topic_.reset();
  reader_topic_.reset();
  if (events_) rd_kafka_queue_io_event_enable(events_.get(), -1, nullptr, 0);
  events_.reset();
  if (producer_ == nullptr && wake_fd_ >= 0) ::close(wake_fd_);
  destroy(std::exchange(producer_, nullptr), std::exchange(wake_fd_, -1), wait);
  destroy(std::exchange(reader_, nullptr), -1, wait);
}

Result<rd_kafka_topic_t*> KafkaClient::reader_topic() {
  if (reader_topic_) return reader_topic_.get();
  DRIFTD_TRY(Conf conf, reader_conf(settings_, name_));
  char error[kErrorTextBytes];
  reader_ = rd_kafka_new(RD_KAFKA_CONSUMER, conf.get(), error, sizeof error);
  if (reader_ == nullptr) return fail(Code::invalid, "Kafka settings: " + shown(error, settings_));
  static_cast<void>(conf.release());
  reader_topic_.reset(rd_kafka_topic_new(reader_, settings_.topic.c_str(), nullptr));
  return reader_topic_.get();
}

void KafkaClient::pause(std::chrono::milliseconds wait) const {
  const Queue never(rd_kafka_queue_new(producer_));  // nothing enters it
  const Event none(rd_kafka_queue_poll(never.get(), static_cast<int>(wait.count())));
}

rd_kafka_resp_err_t KafkaClient::produce(const KafkaRecord& record, std::uint64_t id) const {
  rd_kafka_headers_t* headers = rd_kafka_headers_new(record.headers.size());
  for (const auto& [name, value] : record.headers) {
    rd_kafka_header_add(headers, name.c_str(), static_cast<ssize_t>(name.size()), value.data(),
                        static_cast<ssize_t>(value.size()));
  }
  const rd_kafka_resp_err_t error = rd_kafka_producev(
      producer_, RD_KAFKA_V_RKT(topic_.get()), RD_KAFKA_V_PARTITION(record.partition),
      RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_KEY(record.key.data(), record.key.size()),
      RD_KAFKA_V_VALUE(const_cast<char*>(record.value.data()), record.value.size()), RD_KAFKA_V_HEADERS(headers),
      RD_KAFKA_V_OPAQUE(reinterpret_cast<void*>(static_cast<std::uintptr_t>(id))), RD_KAFKA_V_END);
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) rd_kafka_headers_destroy(headers);
  return error;
}

std::int32_t KafkaClient::partition_of(const std::string& key, int partitions) const {
  return rd_kafka_msg_partitioner_murmur2(topic_.get(), key.data(), key.size(), partitions, nullptr, nullptr);
}

}  // namespace driftd::sinks
