// SPDX-License-Identifier: Apache-2.0
#include "sinks/nats/nats_sink.hpp"

#include <atomic>
#include <boost/asio/redirect_error.hpp>
#include <set>

#include "sinks/nats/broker.hpp"
#include "sinks/nats/encode.hpp"

namespace driftd::sinks {
namespace {

using core::Attempt;
using Outcome = Attempt::Outcome;

constexpr int kInFlight = 256;
constexpr int kCoreInFlight = 1'024;
constexpr std::chrono::milliseconds kGuard{2'000};  // behind the library's own ack time-out
constexpr int kTooLarge = JSStreamMessageExceedsMaximumErr;

Attempt refused(const std::string& text, natsStatus status, int code) {
  const bool too_large = status == NATS_MAX_PAYLOAD || code == kTooLarge;
  std::string detail = text.empty() ? status_text(status) : text;
  if (code != 0) detail += " (JetStream error " + std::to_string(code) + ")";
  return {too_large ? Outcome::permanent : Outcome::retry_sink, std::move(detail), 0};
}

/// Work for io holds shared pointers only, by constructor: g++ 12 copies closures of coroutines bit by bit.
struct Dialled {
  NatsSettings settings;
  std::string name;
};
struct Dial {
  Dial(std::shared_ptr<const Dialled> w, std::shared_ptr<Inbox> i) : what(std::move(w)), inbox(std::move(i)) {}
  Result<std::shared_ptr<Broker>> operator()() const {
    DRIFTD_TRY(auto broker, connect(what->settings, what->name, *inbox));
    return std::make_shared<Broker>(std::move(broker));
  }
  std::shared_ptr<const Dialled> what;
  std::shared_ptr<Inbox> inbox;
};
struct Look {
  std::shared_ptr<Broker> broker;
  std::shared_ptr<const Dialled> what;
  Marks marks;
  std::string created;
};
struct Inspect {
  explicit Inspect(std::shared_ptr<const Look> l) : look(std::move(l)) {}
  Result<Inspection> operator()() const { return inspect(*look->broker, look->what->settings, look->marks, look->created); }
  std::shared_ptr<const Look> look;
};

class NatsSink final : public core::Sink {
 public:
  NatsSink(std::string name, NatsSettings settings, asio::any_io_executor core, asio::any_io_executor io)
      : name_(std::move(name)), settings_(std::move(settings)), core_(core), io_(std::move(io)), inbox_(Inbox::make(core)),
        shared_(std::make_shared<const Dialled>(Dialled{settings_, name_})) {}
  ~NatsSink() override { inbox_->close(); }

  core::RetryPolicy policy() const override { return {true, {}, settings_.jetstream ? kInFlight : kCoreInFlight}; }
  Task<Status> start() override;
  Task<Attempt> send(core::StoredEvent event) override;
  Task<Result<std::optional<std::int64_t>>> check(std::map<std::string, std::string>& notes) override;
  void note(std::map<std::string, std::string>& notes, std::int64_t) override { marks_.write(notes); }
  Task<void> stop() override;
  std::string describe() const override;

 private:
  static void on_ack(void* sink, const std::string& id, Flight& flight, const Ack& ack);
  Status publish(const core::StoredEvent& event, const std::shared_ptr<Flight>& flight);
  Result<Message> message_of(const core::StoredEvent& event, const NatsMessage& address) const;
  Task<Attempt> send_core(core::StoredEvent event);
  bool closed() const {
    return !broker_ || natsConnection_Status(broker_->connection.get()) == NATS_CONN_STATUS_CLOSED;
  }

  std::string name_;
  NatsSettings settings_;
  asio::any_io_executor core_, io_;
  std::shared_ptr<Inbox> inbox_;
  std::shared_ptr<const Dialled> shared_;
  std::shared_ptr<Broker> broker_;  ///< shared with work on io
  Marks marks_;
  bool marks_read_ = false;
  std::multiset<std::int64_t> flying_;
};

Task<Status> NatsSink::start() {
  auto connected = co_await run_on(io_, Dial{shared_, inbox_});
  if (!connected) co_return fail(connected.error());
  inbox_->open(this, &NatsSink::on_ack);
  broker_ = std::move(*connected);
  co_return Status{};
}

void NatsSink::on_ack(void* sink, const std::string& id, Flight& flight, const Ack& ack) {
  auto& self = *static_cast<NatsSink*>(sink);
  if (ack.status != NATS_OK) {
    if (flight.attempt.outcome != Outcome::permanent) flight.attempt = refused(ack.text, ack.status, ack.code);
  } else if (ack.stream_seq == 0) {  // "duplicate" of a message that was never stored (nats-server #6415)
    flight.attempt = {Outcome::retry_event, "the stream called it a duplicate but has it not", 0};
  } else if (!ack.duplicate && !self.flying_.empty()) {
    self.marks_.acked({ack.stream_seq, *self.flying_.begin() - 1, id});
  }
}

Result<Message> NatsSink::message_of(const core::StoredEvent& event, const NatsMessage& address) const {
  natsMsg* raw = nullptr;
  const auto size = static_cast<int>(event.payload.size());
  natsStatus status = natsMsg_Create(&raw, address.subject.c_str(), nullptr, event.payload.data(), size);
  Message message(raw);
  for (const auto& [key, value] : headers_of(event, settings_)) {
    if (status == NATS_OK) status = natsMsgHeader_Set(raw, key.c_str(), value.c_str());
  }
  if (status == NATS_OK) status = natsMsgHeader_Set(raw, "Nats-Msg-Id", address.message_id.c_str());
  if (status != NATS_OK) return fail(Code::internal, "event " + event.stamp.id + ": " + natsStatus_GetText(status));
  return message;
}

Status NatsSink::publish(const core::StoredEvent& event, const std::shared_ptr<Flight>& flight) {
  jsPubOptions options;
  jsPubOptions_Init(&options);
  options.MaxWait = settings_.ack_wait.count();
  options.ExpectStream = settings_.stream.c_str();
  const auto marker = std::to_string(std::chrono::system_clock::now().time_since_epoch() / std::chrono::seconds(1));
  for (const auto& address : messages_of(event, settings_, marker)) {
    DRIFTD_TRY(Message message, message_of(event, address));
    natsMsg* raw = message.release();
    natsMsg* const key = raw;
    const natsStatus status = js_PublishMsgAsync(broker_->stream.get(), &raw, &options);
    if (status != NATS_OK) {
      message.reset(raw);
      flight->attempt = refused("", status, 0);
      return Status{};
    }
    ++flight->left;
    inbox_->expect(key, address.message_id, flight);
  }
  return Status{};
}

Task<Attempt> NatsSink::send(core::StoredEvent event) {
  if (closed()) co_return Attempt{Outcome::retry_sink, "no connection to NATS", 0};
  if (!settings_.jetstream) co_return co_await send_core(std::move(event));
  const auto flight = std::make_shared<Flight>(core_, event.stamp.seq);
  const auto flying = flying_.insert(event.stamp.seq);
  const Status published = publish(event, flight);
  if (!published) flight->attempt = {Outcome::permanent, published.error().message, 0};
  if (flight->left > 0) {
    boost::system::error_code woken;
    flight->done.expires_after(settings_.ack_wait + kGuard);
    co_await flight->done.async_wait(asio::redirect_error(asio::use_awaitable, woken));
  }
  flying_.erase(flying);
  if (flight->left > 0) {
    inbox_->forget(flight);
    if (flight->attempt.outcome == Outcome::delivered) {
      flight->attempt = {Outcome::retry_sink, "no ack within " + std::to_string(settings_.ack_wait.count()) + " ms", 0};
    }
  }
  co_return flight->attempt;
}

Task<Attempt> NatsSink::send_core(core::StoredEvent event) {
  const auto broker = broker_;
  for (const auto& address : messages_of(event, settings_, "")) {
    auto message = message_of(event, address);
    if (!message) co_return Attempt{Outcome::permanent, message.error().message, 0};
    const natsStatus status = natsConnection_PublishMsg(broker->connection.get(), message->get());
    if (status != NATS_OK) co_return refused("", status, 0);
  }
  const auto wait = settings_.ack_wait.count();
  auto work = [broker, wait] {
    return natsConnection_FlushTimeout(broker->connection.get(), wait);  // PONG: the server has it
  };
  const natsStatus flushed = co_await run_on(io_, std::move(work));
  if (flushed != NATS_OK) co_return refused("", flushed, 0);
  co_return Attempt{};
}

Task<Result<std::optional<std::int64_t>>> NatsSink::check(std::map<std::string, std::string>& notes) {
  using Answer = Result<std::optional<std::int64_t>>;
  if (closed()) {
    const Status connected = co_await start();
    if (!connected) co_return Answer(tl::unexpected(connected.error()));
  }
  if (!settings_.jetstream) co_return Answer(std::nullopt);
  if (!marks_read_) marks_.read(notes);
  marks_read_ = true;
  const auto look = std::make_shared<const Look>(Look{broker_, shared_, marks_, notes["stream_created"]});
  auto seen = co_await run_on(io_, Inspect{look});
  if (!seen) co_return Answer(tl::unexpected(seen.error()));
  notes["stream_created"] = seen->created;
  if (seen->rewind_to) marks_.clear();
  co_return Answer(seen->rewind_to);
}

Task<void> NatsSink::stop() {
  inbox_->close();
  const auto broker = std::exchange(broker_, nullptr);
  if (!broker) co_return;
  auto work = [broker] {
    natsConnection_Close(broker->connection.get());
    return true;
  };
  co_await run_on(io_, std::move(work));
}

std::string NatsSink::describe() const {
  if (closed()) return "not connected";
  const auto status = natsConnection_Status(broker_->connection.get());
  if (status != NATS_CONN_STATUS_CONNECTED) return "reconnecting";
  return settings_.jetstream ? "connected, stream " + settings_.stream : "connected, core NATS";
}

}  // namespace

Result<std::unique_ptr<core::Sink>> open_nats(std::string name, NatsSettings settings, asio::any_io_executor core,
                                              asio::any_io_executor io) {
  if (settings.servers.empty()) return fail(Code::invalid, "sink " + name + ": no servers; expected at least one URL");
  return std::make_unique<NatsSink>(std::move(name), std::move(settings), std::move(core), std::move(io));
}

}  // namespace driftd::sinks
