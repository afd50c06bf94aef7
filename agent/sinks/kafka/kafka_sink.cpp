// SPDX-License-Identifier: Apache-2.0
#include "sinks/kafka/kafka_sink.hpp"

#include <algorithm>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/this_coro.hpp>

#include "base/fatal.hpp"
#include "base/log.hpp"
#include "sinks/kafka/checked_topic.hpp"
#include "sinks/kafka/deliveries.hpp"
#include "sinks/kafka/failure_text.hpp"
#include "sinks/kafka/fencing.hpp"
#include "sinks/kafka/lane.hpp"
#include "sinks/kafka/transactions.hpp"

namespace driftd::sinks {
namespace {

using core::Attempt;
using Outcome = Attempt::Outcome;
using Clock = std::chrono::steady_clock;

constexpr int kInFlight = 256;
constexpr std::chrono::milliseconds kReportGrace{5'000};  // added to the library's own time-out
constexpr int kProbeMs = 500;
constexpr std::chrono::milliseconds kBetweenProbes{250};
constexpr std::size_t kBatchBytes = 1'000'000, kMinBatchBytes = 1 << 10;

/// Work for io has a constructor and holds only shared pointers and values that are safe to copy (sinks/nats).
struct Identity {
  KafkaSettings settings;
  std::string name;
};
struct OpenClient {
  OpenClient(std::shared_ptr<const Identity> i, std::size_t b) : identity(std::move(i)), batch_bytes(b) {}
  Result<std::shared_ptr<KafkaClient>> operator()() const {
    return KafkaClient::open(identity->settings, identity->name, batch_bytes);
  }
  std::shared_ptr<const Identity> identity;
  std::size_t batch_bytes;
};
struct InspectTopic {
  InspectTopic(std::shared_ptr<KafkaClient> c, std::shared_ptr<const Identity> i, KnownTopic m)
      : client(std::move(c)),
        identity(std::move(i)),
        memory(std::make_shared<const KnownTopic>(std::move(m))) {}
  Result<TopicInspection> operator()() const { return inspect(*client, identity->settings, *memory); }
  std::shared_ptr<KafkaClient> client;
  std::shared_ptr<const Identity> identity;
  std::shared_ptr<const KnownTopic> memory;
};
struct Probe {
  explicit Probe(std::shared_ptr<KafkaClient> c) : client(std::move(c)) {}
  bool operator()() const { return !client->stopping() && answers(*client, kProbeMs); }
  std::shared_ptr<KafkaClient> client;
};
struct EndClient {
  explicit EndClient(std::shared_ptr<KafkaClient> c) : client(std::move(c)) {}
  bool operator()() const {
    client->end();
    return true;
  }
  std::shared_ptr<KafkaClient> client;
};

/// Nothing is sent before the topic was checked, and an acknowledgement while it is in doubt settles nothing.
/// Otherwise a topic that lost acknowledged records could hide that behind new ones. Core thread.
class KafkaSink final : public core::Sink, private Deliveries::Reader {
 public:
  KafkaSink(std::string name, KafkaSettings settings, asio::any_io_executor core, asio::any_io_executor io)
      : name_(std::move(name)),
        settings_(std::move(settings)),
        core_(core),
        io_(asio::make_strand(std::move(io))),
        identity_(std::make_shared<const Identity>(Identity{settings_, name_})),
        lane_(core),
        topic_(name_, settings_.topic) {}
  ~KafkaSink() override { close(); }

  core::RetryPolicy policy() const override { return {true, {}, kInFlight}; }
  Task<Status> start() override;
  Task<Attempt> send(core::StoredEvent event) override;
  bool must_check() const override { return given_up_.empty() && client_ && topic_.must_check(); }
  void attach(std::function<void()> wake) override { wake_ = std::move(wake); }
  Task<Result<std::optional<std::int64_t>>> check(std::map<std::string, std::string>& notes) override;
  void note(std::map<std::string, std::string>& notes, std::int64_t settled_to) override {
    topic_.note(notes, settled_to);
  }
  Task<void> stop() override;
  std::string describe() const override;

 private:
  void on_trouble(rd_kafka_resp_err_t error, const std::string& text, bool fatal) override;
  void on_fatal(rd_kafka_resp_err_t error, const std::string& text);
  void fenced();
  void brokers_down();
  static Task<void> await_return(std::shared_ptr<KafkaSink*> self, std::shared_ptr<KafkaClient> client,
                                 asio::any_io_executor io);
  void doubt() {
    topic_.doubt();
    wake_();
  }
  Task<RecordReport> deliver(std::shared_ptr<const KafkaRecord> record, bool alone);
  Task<RecordReport> produce(std::shared_ptr<const KafkaRecord> record);
  Attempt settle(const core::StoredEvent& event, const RecordReport& report);
  Attempt refused(const RecordReport& report);
  bool limit_batches(std::size_t bytes);
  bool limits_batches(const TopicInspection& seen);
  void close();

  std::string name_;
  KafkaSettings settings_;
  /// io_ is a strand, so that brokers that do not answer block one thread of the pool and not two
  asio::any_io_executor core_, io_;
  std::shared_ptr<const Identity> identity_;
  std::function<void()> wake_ = [] {};
  std::shared_ptr<KafkaClient> client_;  ///< shared with work on io
  std::shared_ptr<Deliveries> deliveries_;
  std::shared_ptr<Transactions> transactions_;                             ///< null without a transactional id
  std::shared_ptr<KafkaSink*> self_ = std::make_shared<KafkaSink*>(this);  ///< null inside once closed
  Lane lane_;
  CheckedTopic topic_;
  std::size_t batch_bytes_ = kBatchBytes;
  Fencing fencing_;
  bool down_ = false;
  std::string broken_;    ///< why the client must be opened again
  std::string given_up_;  ///< why the sink takes its transactional id back no more
  std::string last_trouble_;
};

void KafkaSink::close() {
  *self_ = nullptr;
  self_ = std::make_shared<KafkaSink*>(this);
  if (deliveries_) deliveries_->close();
  if (client_) client_->stop_soon();
  deliveries_.reset();
  transactions_.reset();
  client_.reset();
}

Task<Status> KafkaSink::start() {
  std::shared_ptr<KafkaClient> before = client_;
  close();
  if (before) co_await run_on(io_, EndClient(std::move(before)));
  auto opened = co_await run_on(io_, OpenClient(identity_, batch_bytes_));
  if (!opened) co_return fail(opened.error());
  client_ = std::move(*opened);
  broken_.clear();
  down_ = false;
  topic_.forget_check();
  deliveries_ = Deliveries::open(core_, client_, *this);
  if (!deliveries_) {
    close();
    co_return fail(Code::unavailable, "Kafka: no descriptor for delivery reports: too many open files?");
  }
  if (!settings_.transactional_id.empty())
    transactions_ = std::make_shared<Transactions>(core_, io_, client_, deliveries_, settings_);
  co_return Status{};
}

void KafkaSink::on_trouble(rd_kafka_resp_err_t error, const std::string& text, bool fatal_error) {
  if (fatal_error) return on_fatal(error, text);
  if (error == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN) return brokers_down();
  last_trouble_ = describe_failure(error, text, settings_);
}

void KafkaSink::on_fatal(rd_kafka_resp_err_t error, const std::string& text) {
  if (!client_ || !broken_.empty()) return;  // it is opened again anyway
  char detail[512] = "";
  const rd_kafka_resp_err_t cause = rd_kafka_fatal_error(client_->producer(), detail, sizeof detail);
  broken_ = describe_failure(cause == RD_KAFKA_RESP_ERR_NO_ERROR ? error : cause,
                             detail[0] == '\0' ? text : std::string(detail), settings_);
  if (is_fenced(error) || is_fenced(cause)) fenced();
  // null while it is opened: nothing is in flight yet
  if (deliveries_) deliveries_->give_up({RD_KAFKA_RESP_ERR__FATAL, broken_, 0, RD_KAFKA_OFFSET_INVALID});
  doubt();
}

void KafkaSink::fenced() {
  const std::string what = "another producer uses transactional_id '" + settings_.transactional_id +
                           "': each agent, and each sink, needs its own";
  broken_ = what;
  if (fencing_.lost(Clock::now())) {
    given_up_ = what;
    log::room("delivery").error("sink {}: {}; it was taken away three times and is left to the other one", name_, what);
  } else {
    log::room("delivery").error("sink {}: {}; taking it back", name_, what);
  }
}

void KafkaSink::brokers_down() {
  if (std::exchange(down_, true)) return;
  asio::co_spawn(core_, await_return(self_, client_, io_), fatal);
  doubt();
}

/// Wakes the sink's runner when a broker answers again, so that it does not wait for its circuit.
Task<void> KafkaSink::await_return(std::shared_ptr<KafkaSink*> self, std::shared_ptr<KafkaClient> client,
                                   asio::any_io_executor io) {
  asio::steady_timer pause(co_await asio::this_coro::executor);
  boost::system::error_code woken;
  while (*self != nullptr) {
    Probe probe(client);
    const bool back = co_await run_on(io, std::move(probe));
    if (*self == nullptr) break;
    if (back) {
      (*self)->down_ = false;
      (*self)->wake_();
      break;
    }
    pause.expires_after(kBetweenProbes);
    co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, woken));
  }
}

Task<RecordReport> KafkaSink::produce(std::shared_ptr<const KafkaRecord> record) {
  const auto flight = std::make_shared<RecordFlight>(core_);
  const auto deliveries = deliveries_;
  const std::uint64_t id = deliveries->expect(flight);
  const rd_kafka_resp_err_t error = client_->produce(*record, id);
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) {
    deliveries->forget(id);
    co_return RecordReport{error, "", record->partition, RD_KAFKA_OFFSET_INVALID};
  }
  if (!flight->over) {
    boost::system::error_code woken;
    flight->done.expires_after(settings_.ack_wait + kReportGrace);
    co_await flight->done.async_wait(asio::redirect_error(asio::use_awaitable, woken));
  }
  deliveries->forget(id);
  if (!flight->over)
    co_return RecordReport{RD_KAFKA_RESP_ERR__MSG_TIMED_OUT, "no report", record->partition, RD_KAFKA_OFFSET_INVALID};
  co_return flight->report;
}

Task<RecordReport> KafkaSink::deliver(std::shared_ptr<const KafkaRecord> record, bool alone) {
  co_await lane_.enter(alone);
  RecordReport report{RD_KAFKA_RESP_ERR__DESTROY, "the sink stopped, or its topic is to be checked first",
                      record->partition, RD_KAFKA_OFFSET_INVALID};
  // while it waited, the client may have been opened again
  if (client_ && topic_.checked()) report = co_await produce(std::move(record));
  lane_.leave();
  co_return report;
}

Task<Attempt> KafkaSink::send(core::StoredEvent event) {
  if (!given_up_.empty()) co_return Attempt{Outcome::disabled, given_up_, 0};
  if (!client_ || !broken_.empty())
    co_return Attempt{Outcome::retry_sink, broken_.empty() ? "no connection to Kafka" : broken_, 0};
  if (!topic_.checked()) co_return Attempt{Outcome::retry_sink, "the topic was not checked yet", 0};
  auto made = record_of(event, settings_);
  if (!made) co_return Attempt{Outcome::permanent, made.error().message, 0};
  made->partition = client_->partition_of(event.key, topic_.partitions());
  if (!topic_.has_leader(made->partition)) {
    co_return Attempt{
        Outcome::retry_event,
        "partition " + std::to_string(made->partition) + " of topic " + settings_.topic + " has no leader that answers",
        0};
  }
  const auto record = std::make_shared<const KafkaRecord>(std::move(*made));
  RecordReport report;
  if (const auto transactions = transactions_) {
    report = co_await transactions->send(record);
  } else {
    report = co_await deliver(record, false);
    if (report.error == RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE) {  // it, or the batch that it was part of?
      report = co_await deliver(record, true);
      if (report.error == RD_KAFKA_RESP_ERR_NO_ERROR && limit_batches(batch_bytes_ / 2)) {
        broken_ = "batches are made smaller, as the topic refuses them";
        doubt();
      }
    }
  }
  co_return settle(event, report);
}

/// Makes batches smaller. Returns true if the client must be opened again for this.
bool KafkaSink::limit_batches(std::size_t bytes) {
  bytes = std::clamp(bytes, kMinBatchBytes, kBatchBytes);
  return std::exchange(batch_bytes_, std::min(batch_bytes_, bytes)) > bytes;
}

bool KafkaSink::limits_batches(const TopicInspection& seen) {
  return seen.max_batch_bytes &&
         limit_batches(static_cast<std::size_t>(std::max<std::int64_t>(*seen.max_batch_bytes, 0)));
}

Attempt KafkaSink::settle(const core::StoredEvent& event, const RecordReport& report) {
  if (report.error != RD_KAFKA_RESP_ERR_NO_ERROR) return refused(report);
  if (report.offset < 0)  // the broker calls it a duplicate and no longer knows where it is
    return {Outcome::retry_event, "topic " + settings_.topic + ": acknowledged without an offset", 0};
  if (!topic_.checked())
    return {Outcome::retry_sink, "acknowledged while topic " + settings_.topic + " was in doubt", 0};
  if (topic_.acked(report.partition, report.offset, event.stamp.id, event.replay ? 0 : event.stamp.seq)) return {};
  doubt();
  return {Outcome::retry_sink,
          "partition " + std::to_string(report.partition) + " of topic " + settings_.topic +
              " gave an offset twice: it may have lost events, and is checked",
          0};
}

Attempt KafkaSink::refused(const RecordReport& report) {
  Outcome outcome = classify_failure(report.error);
  if (is_topic_gone(report.error)) doubt();
  if (is_fenced(report.error) && broken_.empty()) on_fatal(report.error, report.text);
  if (report.client_failed && broken_.empty() && client_) {
    broken_ = describe_failure(report.error, report.text, settings_);
    doubt();
  }
  if (!broken_.empty() && outcome != Outcome::permanent) return {Outcome::retry_sink, broken_, 0};
  if (down_ && outcome == Outcome::refused) outcome = Outcome::retry_sink;
  std::string text = describe_failure(report.error, report.text, settings_);
  if (down_ && !last_trouble_.empty()) text = last_trouble_;
  return {outcome, std::move(text), 0};
}

Task<Result<std::optional<std::int64_t>>> KafkaSink::check(std::map<std::string, std::string>& notes) {
  using Answer = Result<std::optional<std::int64_t>>;
  if (!given_up_.empty()) co_return Answer(std::nullopt);
  if (!client_ || !broken_.empty()) {
    const Status opened = co_await start();
    if (!opened) co_return Answer(tl::unexpected(opened.error()));
  }
  KnownTopic memory = topic_.begin_check(notes);
  const std::uint64_t before = topic_.doubts();
  const InspectTopic work(client_, identity_, std::move(memory));
  auto seen = co_await run_on(io_, work);
  if (!seen) {
    Error error = seen.error();
    if (!last_trouble_.empty() && error.code == Code::unavailable) error.message = last_trouble_;
    co_return Answer(tl::unexpected(std::move(error)));
  }
  if (limits_batches(*seen)) {
    const Status opened = co_await start();
    if (!opened) co_return Answer(tl::unexpected(opened.error()));
  }
  if (!client_ || before != topic_.doubts())
    co_return Answer(
        fail(Code::unavailable, "Kafka: something changed while topic " + settings_.topic + " was checked"));
  std::optional<std::int64_t> rewind;
  if (seen->loss) rewind = seen->loss->rewind_to;
  last_trouble_.clear();
  topic_.apply(std::move(*seen), before, notes);
  co_return Answer(rewind);
}

Task<void> KafkaSink::stop() {
  std::shared_ptr<KafkaClient> client = client_;
  close();
  if (client) co_await run_on(io_, EndClient(std::move(client)));
}

std::string KafkaSink::describe() const {
  if (!given_up_.empty()) return given_up_;
  if (!client_) return "not connected";
  if (down_) return "reconnecting";
  if (!topic_.was_checked()) return "connecting";
  return "connected, topic " + settings_.topic + (topic_.warnings().empty() ? "" : "; " + topic_.warnings());
}

}  // namespace

Result<std::unique_ptr<core::Sink>> open_kafka(std::string name, KafkaSettings settings, asio::any_io_executor core,
                                               asio::any_io_executor io) {
  if (settings.bootstrap_servers.empty())
    return fail(Code::invalid, "sink " + name + ": no bootstrap_servers; expected at least one host:port");
  if (settings.topic.empty()) return fail(Code::invalid, "sink " + name + ": no topic");
  return std::make_unique<KafkaSink>(std::move(name), std::move(settings), std::move(core), std::move(io));
}

}  // namespace driftd::sinks
