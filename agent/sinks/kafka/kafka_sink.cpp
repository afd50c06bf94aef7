// SPDX-License-Identifier: Apache-2.0
#include "sinks/kafka/kafka_sink.hpp"

#include <algorithm>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/strand.hpp>

#include "base/fatal.hpp"
#include "base/log.hpp"
#include "sinks/kafka/deliveries.hpp"
#include "sinks/kafka/failure_text.hpp"
#include "sinks/kafka/fencing.hpp"
#include "sinks/kafka/lane.hpp"
#include "sinks/kafka/positions.hpp"
#include "sinks/kafka/topic.hpp"
#include "sinks/kafka/transactions.hpp"

namespace driftd::sinks {
namespace {

using core::Attempt;
using Outcome = Attempt::Outcome;
using Clock = std::chrono::steady_clock;

constexpr int kInFlight = 256;
constexpr std::chrono::milliseconds kReportGrace{5'000};  // added to the library's own time-out
constexpr std::chrono::seconds kLookAgain{5};             // between checks because a partition has no leader
constexpr int kProbeMs = 500;
constexpr std::chrono::milliseconds kBetweenProbes{250};
constexpr std::size_t kBatchBytes = 1'000'000, kMinBatchBytes = 16 << 10;

constexpr const char* kMarksNote = "kafka_marks";
constexpr const char* kTopicNote = "kafka_topic";

/// Work for io has a constructor and holds only shared pointers and values that are safe to copy (sinks/nats).
struct Identity {
  KafkaSettings settings;
  std::string name;
};
struct Open {
  Open(std::shared_ptr<const Identity> i, std::size_t b) : identity(std::move(i)), batch_bytes(b) {}
  Result<std::shared_ptr<KafkaClient>> operator()() const {
    return KafkaClient::open(identity->settings, identity->name, batch_bytes);
  }
  std::shared_ptr<const Identity> identity;
  std::size_t batch_bytes;
};
struct Inspect {
  Inspect(std::shared_ptr<KafkaClient> c, std::shared_ptr<const Identity> i, KnownTopic m)
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
  bool operator()() const { return answers(*client, kProbeMs); }
  std::shared_ptr<KafkaClient> client;
};
/// Ends a client on io, where its last owner must be.
struct Release {
  explicit Release(std::shared_ptr<KafkaClient> c)
      : client(std::make_shared<std::shared_ptr<KafkaClient>>(std::move(c))) {}
  bool operator()() const {
    client->reset();
    return true;
  }
  std::shared_ptr<std::shared_ptr<KafkaClient>> client;
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
        lane_(core) {}
  ~KafkaSink() override { close(); }

  core::RetryPolicy policy() const override { return {true, {}, kInFlight}; }
  Task<Status> start() override;
  Task<Attempt> send(core::StoredEvent event) override;
  bool must_check() const override { return given_up_.empty() && client_ && !checked(); }
  void attach(std::function<void()> wake) override { wake_ = std::move(wake); }
  Task<Result<std::optional<std::int64_t>>> check(std::map<std::string, std::string>& notes) override;
  void note(std::map<std::string, std::string>& notes, std::int64_t settled_to) override;
  Task<void> stop() override;
  std::string describe() const override;

 private:
  void on_trouble(rd_kafka_resp_err_t error, const std::string& text, bool fatal) override;
  void on_fatal(rd_kafka_resp_err_t error, const std::string& text);
  void fenced();
  void brokers_down();
  static Task<void> await_return(std::shared_ptr<KafkaSink*> self, std::shared_ptr<KafkaClient> client);
  void doubt() {
    ++doubts_;
    wake_();
  }
  Task<Report> deliver(std::shared_ptr<const KafkaRecord> record, bool alone);
  Task<Report> produce(std::shared_ptr<const KafkaRecord> record);
  Attempt settle(const core::StoredEvent& event, const Report& report);
  Attempt refused(const Report& report);
  void limit_batches(std::size_t bytes);
  void read_notes(const std::map<std::string, std::string>& notes);
  void apply_inspection(TopicInspection seen);
  bool checked() const { return checked_ && *checked_ == doubts_; }
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
  Positions positions_;
  bool notes_read_ = false;
  std::optional<std::uint64_t> checked_;  ///< the value of doubts_ for which the topic was checked
  std::uint64_t doubts_ = 0;              ///< rises when something may have been lost or changed since
  Clock::time_point checked_at_{};
  unsigned checks_ = 0;
  int partitions_ = 0;
  std::set<std::int32_t> trusted_;  ///< partitions that were checked
  std::string marks_topic_;         ///< the topic that positions_ are about
  std::size_t batch_bytes_ = kBatchBytes;
  Fencing fencing_;
  bool down_ = false;
  std::string broken_;    ///< why the client must be opened again
  std::string given_up_;  ///< why the sink takes its transactional id back no more
  std::string last_trouble_, warnings_;
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
  if (before) co_await run_on(io_, Release(std::move(before)));
  auto opened = co_await run_on(io_, Open(identity_, batch_bytes_));
  if (!opened) co_return fail(opened.error());
  client_ = std::move(*opened);
  broken_.clear();
  down_ = false;
  checked_.reset();
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
  char detail[512] = "";
  const rd_kafka_resp_err_t cause = rd_kafka_fatal_error(client_->producer(), detail, sizeof detail);
  broken_ = describe_failure(cause == RD_KAFKA_RESP_ERR_NO_ERROR ? error : cause,
                             detail[0] == '\0' ? text : std::string(detail), settings_);
  if (is_fenced(error) || is_fenced(cause)) fenced();
  const auto ended = deliveries_;
  ended->give_up({RD_KAFKA_RESP_ERR__FATAL, broken_, 0, RD_KAFKA_OFFSET_INVALID});
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
  asio::co_spawn(core_, await_return(self_, client_), fatal);
  doubt();
}

/// Wakes the sink's runner when a broker answers again, so that it does not wait for its circuit.
Task<void> KafkaSink::await_return(std::shared_ptr<KafkaSink*> self, std::shared_ptr<KafkaClient> client) {
  asio::steady_timer pause((*self)->core_);
  const asio::any_io_executor io = (*self)->io_;
  boost::system::error_code woken;
  for (bool back = false; *self != nullptr && !back && !client->stopping();) {
    Probe probe(client);
    back = co_await run_on(io, std::move(probe));
    if (*self == nullptr) break;
    if (back) {
      (*self)->down_ = false;
      (*self)->wake_();
    } else {
      pause.expires_after(kBetweenProbes);
      co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, woken));
    }
  }
  co_await run_on(io, Release(std::move(client)));
}

Task<Report> KafkaSink::produce(std::shared_ptr<const KafkaRecord> record) {
  const auto flight = std::make_shared<Flight>(core_);
  const auto deliveries = deliveries_;
  const std::uint64_t id = deliveries->expect(flight);
  const rd_kafka_resp_err_t error = client_->produce(*record, id);
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) {
    deliveries->forget(id);
    co_return Report{error, "", record->partition, RD_KAFKA_OFFSET_INVALID};
  }
  if (!flight->over) {
    boost::system::error_code woken;
    flight->done.expires_after(settings_.ack_wait + kReportGrace);
    co_await flight->done.async_wait(asio::redirect_error(asio::use_awaitable, woken));
  }
  deliveries->forget(id);
  if (!flight->over)
    co_return Report{RD_KAFKA_RESP_ERR__MSG_TIMED_OUT, "no report", record->partition, RD_KAFKA_OFFSET_INVALID};
  co_return flight->report;
}

Task<Report> KafkaSink::deliver(std::shared_ptr<const KafkaRecord> record, bool alone) {
  co_await lane_.enter(alone);
  Report report{RD_KAFKA_RESP_ERR__DESTROY, "the sink is stopped", record->partition, RD_KAFKA_OFFSET_INVALID};
  if (client_) report = co_await produce(std::move(record));
  lane_.leave();
  co_return report;
}

Task<Attempt> KafkaSink::send(core::StoredEvent event) {
  if (!given_up_.empty()) co_return Attempt{Outcome::disabled, given_up_, 0};
  if (!client_ || !broken_.empty())
    co_return Attempt{Outcome::retry_sink, broken_.empty() ? "no connection to Kafka" : broken_, 0};
  if (!checked()) co_return Attempt{Outcome::retry_sink, "the topic was not checked yet", 0};
  auto made = record_of(event, settings_);
  if (!made) co_return Attempt{Outcome::permanent, made.error().message, 0};
  made->partition = client_->partition_of(event.key, partitions_);
  if (trusted_.count(made->partition) == 0) {
    if (Clock::now() - checked_at_ > kLookAgain) doubt();
    co_return Attempt{
        Outcome::retry_event,
        "partition " + std::to_string(made->partition) + " of topic " + settings_.topic + " has no leader that answers",
        0};
  }
  const auto record = std::make_shared<const KafkaRecord>(std::move(*made));
  Report report;
  if (const auto transactions = transactions_) {
    report = co_await transactions->send(record);
  } else {
    report = co_await deliver(record, false);
    if (report.error == RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE) {  // it, or the batch that it was part of?
      report = co_await deliver(record, true);
      if (report.error == RD_KAFKA_RESP_ERR_NO_ERROR) limit_batches(batch_bytes_ / 2);
    }
  }
  co_return settle(event, report);
}

/// Makes batches smaller than the topic's maximum. The client is opened again for this.
void KafkaSink::limit_batches(std::size_t bytes) {
  bytes = std::clamp(bytes, kMinBatchBytes, kBatchBytes);
  if (bytes >= batch_bytes_) return;
  batch_bytes_ = bytes;
  broken_ = "batches are made smaller, as the topic's max.message.bytes is small";
  doubt();
}

Attempt KafkaSink::settle(const core::StoredEvent& event, const Report& report) {
  if (report.error != RD_KAFKA_RESP_ERR_NO_ERROR) return refused(report);
  if (report.offset < 0)  // the broker calls it a duplicate and no longer knows where it is
    return {Outcome::retry_event, "topic " + settings_.topic + ": acknowledged without an offset", 0};
  if (!checked()) return {Outcome::retry_sink, "acknowledged while topic " + settings_.topic + " was in doubt", 0};
  if (positions_.acked(report.partition, report.offset, event.stamp.id, event.replay ? 0 : event.stamp.seq)) return {};
  doubt();
  return {Outcome::retry_sink,
          "partition " + std::to_string(report.partition) + " of topic " + settings_.topic +
              " gave an offset twice: it may have lost events, and is checked",
          0};
}

Attempt KafkaSink::refused(const Report& report) {
  Outcome outcome = classify_failure(report.error);
  if (is_topic_gone(report.error)) doubt();
  if (is_fenced(report.error) && broken_.empty()) on_fatal(report.error, report.text);
  if (!broken_.empty() && outcome != Outcome::permanent) return {Outcome::retry_sink, broken_, 0};
  if (down_ && outcome == Outcome::refused) outcome = Outcome::retry_sink;
  std::string text = describe_failure(report.error, report.text, settings_);
  if (down_ && !last_trouble_.empty()) text = last_trouble_;
  return {outcome, std::move(text), 0};
}

void KafkaSink::read_notes(const std::map<std::string, std::string>& notes) {
  if (std::exchange(notes_read_, true)) return;
  const auto marks = notes.find(kMarksNote), topic = notes.find(kTopicNote);
  if (marks != notes.end()) positions_.parse(marks->second);
  if (topic != notes.end()) marks_topic_ = topic->second;
}

Task<Result<std::optional<std::int64_t>>> KafkaSink::check(std::map<std::string, std::string>& notes) {
  using Answer = Result<std::optional<std::int64_t>>;
  if (!given_up_.empty()) co_return Answer(std::nullopt);
  if (!client_ || !broken_.empty()) {
    const Status opened = co_await start();
    if (!opened) co_return Answer(tl::unexpected(opened.error()));
  }
  read_notes(notes);
  const std::uint64_t before = doubts_;
  const Inspect work(client_, identity_, {positions_.all(), marks_topic_, checks_++});
  auto seen = co_await run_on(io_, work);
  if (!seen) {
    Error error = seen.error();
    if (!last_trouble_.empty() && error.code == Code::unavailable) error.message += " (" + last_trouble_ + ")";
    co_return Answer(tl::unexpected(std::move(error)));
  }
  if (!client_ || before != doubts_)
    co_return Answer(
        fail(Code::unavailable, "Kafka: something changed while topic " + settings_.topic + " was checked"));
  std::optional<std::int64_t> rewind;
  if (seen->loss) rewind = seen->loss->rewind_to;
  checked_ = before;
  last_trouble_.clear();
  apply_inspection(std::move(*seen));
  notes[kTopicNote] = marks_topic_;
  co_return Answer(rewind);
}

void KafkaSink::apply_inspection(TopicInspection seen) {
  if (partitions_ != 0 && partitions_ != seen.partitions) {
    log::room("delivery")
        .warn(
            "sink {}: topic {} has {} partitions now, it had {}: events of one resource may be in two partitions, "
            "compare "
            "ce_driftseq",
            name_, settings_.topic, seen.partitions, partitions_);
  }
  partitions_ = seen.partitions;
  trusted_ = std::move(seen.trusted);
  checked_at_ = Clock::now();
  marks_topic_ = settings_.topic;
  positions_.resize(partitions_);
  if (seen.warnings != warnings_ && !seen.warnings.empty())
    log::room("delivery").warn("sink {}: topic {}: {}", name_, settings_.topic, seen.warnings);
  warnings_ = std::move(seen.warnings);
  if (seen.loss) {
    for (const auto& [partition, kept] : seen.loss->marks_kept) positions_.keep_oldest(partition, kept);
  }
  if (seen.max_batch_bytes) limit_batches(static_cast<std::size_t>(std::max<std::int64_t>(*seen.max_batch_bytes, 0)));
}

void KafkaSink::note(std::map<std::string, std::string>& notes, std::int64_t settled_to) {
  if (!notes_read_) return;
  positions_.promise(settled_to);
  notes[kMarksNote] = positions_.render();
}

Task<void> KafkaSink::stop() {
  std::shared_ptr<KafkaClient> client = client_;
  close();
  if (client) co_await run_on(io_, Release(std::move(client)));
}

std::string KafkaSink::describe() const {
  if (!given_up_.empty()) return given_up_;
  if (!client_) return "not connected";
  if (down_) return "reconnecting";
  if (!checked_) return "connecting";
  return "connected, topic " + settings_.topic + (warnings_.empty() ? "" : "; " + warnings_);
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
