// SPDX-License-Identifier: Apache-2.0
#include "sinks/nats/nats_sink.hpp"

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/strand.hpp>

#include "base/log.hpp"
#include "sinks/nats/broker.hpp"
#include "sinks/nats/encode.hpp"
#include "sinks/nats/failure_text.hpp"
#include "sinks/nats/publisher.hpp"
#include "sinks/nats/stream.hpp"

namespace driftd::sinks {
namespace {

using core::Attempt;
using Outcome = Attempt::Outcome;

constexpr int kInFlight = 256;
constexpr int kCoreInFlight = 1'024;
constexpr std::chrono::milliseconds kAckGrace{2'000};  // added to the library's own ack time-out

/// Work for io holds only shared pointers and has a constructor, because g++ 12 copies closures of coroutines bit by
/// bit.
struct ConnectSettings {
  NatsSettings settings;
  std::string name;
};
struct Connect {
  Connect(std::shared_ptr<const ConnectSettings> w, std::shared_ptr<Inbox> i)
      : what(std::move(w)),
        inbox(std::move(i)) {}
  Result<std::shared_ptr<Broker>> operator()() const {
    DRIFTD_TRY(auto broker, connect(what->settings, what->name, *inbox));
    return std::make_shared<Broker>(std::move(broker));
  }
  std::shared_ptr<const ConnectSettings> what;
  std::shared_ptr<Inbox> inbox;
};
struct Inspect {
  Inspect(std::shared_ptr<Broker> b, std::shared_ptr<const ConnectSettings> w, std::shared_ptr<Inbox> i, KnownStream m)
      : broker(std::move(b)),
        what(std::move(w)),
        inbox(std::move(i)),
        memory(std::make_shared<const KnownStream>(std::move(m))) {}
  Result<Inspection> operator()() const {
    const std::uint64_t before = broker->reconnects();
    DRIFTD_TRY(Inspection out, inspect(*broker, what->settings, *memory, *inbox));
    out.reconnects = before;  // if it reconnected meanwhile, messages on the new connection have another number
    return out;
  }
  std::shared_ptr<Broker> broker;
  std::shared_ptr<const ConnectSettings> what;
  std::shared_ptr<Inbox> inbox;
  std::shared_ptr<const KnownStream> memory;
};

/// Nothing is published on a connection before the stream was checked on it, and an acknowledgement on another
/// connection settles nothing. Otherwise a broker that lost acknowledged events could hide that behind new ones. Core
/// thread.
class NatsSink final : public core::Sink, private Inbox::Reader {
 public:
  NatsSink(std::string name, NatsSettings settings, asio::any_io_executor core, asio::any_io_executor io)
      : name_(std::move(name)),
        settings_(std::move(settings)),
        core_(core),
        io_(asio::make_strand(std::move(io))),
        inbox_(Inbox::make(core)),
        shared_(std::make_shared<const ConnectSettings>(ConnectSettings{settings_, name_})),
        publisher_(std::make_shared<Publisher>(core_, io_, inbox_)) {}
  ~NatsSink() override { inbox_->close(); }

  core::RetryPolicy policy() const override { return {true, {}, settings_.jetstream ? kInFlight : kCoreInFlight}; }
  Task<Status> start() override;
  Task<Attempt> send(core::StoredEvent event) override;
  Task<Attempt> send_shared(std::shared_ptr<const core::StoredEvent> event) override;
  bool must_check() const override { return settings_.jetstream && connected() && !trusted(); }
  void attach(std::function<void()> wake) override { wake_ = std::move(wake); }
  Task<Result<std::optional<std::int64_t>>> check(std::map<std::string, std::string>& notes) override;
  void note(std::map<std::string, std::string>& notes, std::int64_t settled_to) override;
  Task<void> stop() override;
  std::string describe() const override;

 private:
  /// Identifies the connection on which the stream was checked. A doubt (an answer that an intact stream cannot give)
  /// invalidates the check.
  struct CheckedConnection {
    std::uint64_t changes = 0, doubts = 0;
    friend bool operator==(const CheckedConnection&, const CheckedConnection&) = default;
  };

  void on_ack(const Expected& message, const Ack& ack) override;
  void on_reconnected() override;
  void acknowledged(const Expected& message, const Ack& ack);
  Attempt refused(const std::string& subject, const Ack& ack) const;
  std::string subject_refusal(const std::string& subject, const Ack& ack) const;
  Result<std::shared_ptr<Parcel>> parcel_of(std::shared_ptr<const core::StoredEvent> event) const;
  Result<Piece> piece_of(const core::StoredEvent& event, NatsMessage address) const;
  Status publish(std::shared_ptr<const core::StoredEvent> event, const std::shared_ptr<Flight>& flight);
  Task<Attempt> send_core(std::shared_ptr<const core::StoredEvent> event);
  void remember_stored(const core::StoredEvent& event, const Flight& flight);
  void apply_inspection(Inspection seen, std::map<std::string, std::string>& notes);
  CheckedConnection now() const { return {inbox_->changes(), doubts_}; }
  bool trusted() const { return checked_ && *checked_ == now(); }
  bool closed() const { return !broker_ || inbox_->closed(); }
  bool connected() const { return broker_ && inbox_->up(); }

  std::string name_;
  NatsSettings settings_;
  /// io_ is a strand, so that a broker that does not read blocks one thread of the pool and not two
  asio::any_io_executor core_, io_;
  std::shared_ptr<Inbox> inbox_;
  std::shared_ptr<const ConnectSettings> shared_;
  std::shared_ptr<Publisher> publisher_;
  std::shared_ptr<Broker> broker_;  ///< shared with work on io
  std::uint64_t reconnects_ = 0;    ///< Broker::reconnects() of the checked connection
  std::function<void()> wake_ = [] {};
  std::optional<CheckedConnection> checked_;
  std::uint64_t doubts_ = 0;
  unsigned checks_ = 0;
  Marks marks_;
  bool marks_read_ = false;
  std::vector<std::string> subjects_;  ///< subjects of the stream at its last check
  std::string warnings_;
  std::int64_t max_message_ = -1;       ///< max_msg_size of the stream at its last check
  std::set<std::string> stored_parts_;  ///< messages that the stream has of partly stored events; they are not
                                        ///< published again
};

Task<Status> NatsSink::start() {
  auto connected = co_await run_on(io_, Connect{shared_, inbox_});
  if (!connected) co_return fail(connected.error());
  inbox_->open(*this);
  broker_ = std::move(*connected);
  checked_.reset();
  co_return Status{};
}

void NatsSink::on_reconnected() {
  if (settings_.jetstream) inbox_->give_up({Outcome::retry_sink, "the connection was lost before the answer came", 0});
  wake_();
}

void NatsSink::on_ack(const Expected& message, const Ack& ack) {
  Attempt& attempt = message.flight->attempt;
  if (ack.status == NATS_OK) return acknowledged(message, ack);
  Ack shown = ack;
  shown.text = without_our_secrets(ack.text, settings_);
  if (ack.code == JSStreamMessageExceedsMaximumErr) {
    const std::size_t bytes = message_bytes(*message.event, settings_, message.id);
    const bool known = max_message_ >= 0 && static_cast<std::size_t>(max_message_) < bytes;  // else just lowered
    shown.text = "the message has " + std::to_string(bytes) + " bytes with its headers, and stream " +
                 settings_.stream + " takes " + (known ? std::to_string(max_message_) : "less");
  }
  if (attempt.outcome != Outcome::permanent) attempt = refused(message.subject, shown);
}

void NatsSink::acknowledged(const Expected& message, const Ack& ack) {
  Attempt& attempt = message.flight->attempt;
  if (ack.stream_seq == 0) {  // "duplicate" of a message that was never stored (nats-server #6415)
    attempt = {Outcome::retry_event,
               message.subject + ": the stream calls it a duplicate of a message that it does not have", 0};
  } else if (!trusted()) {
    attempt = {Outcome::retry_sink, "acknowledged on a connection on which the stream was not checked yet", 0};
  } else if (!marks_.acked(ack.stream_seq, ack.duplicate, message.id, message.flight->event)) {
    ++doubts_;
    attempt = {Outcome::retry_sink,
               "stream " + settings_.stream + " gave a sequence number twice: it may have lost events, and is checked",
               0};
    wake_();
  } else {
    if (message.flight->parts > 1) message.flight->stored.insert(message.id);
  }
}

/// Returns why a refusal concerns only the subject of this event, so that the others go on. Empty if it does not.
std::string NatsSink::subject_refusal(const std::string& subject, const Ack& ack) const {
  const bool unknown = subjects_.empty() || covers(subjects_, subject);
  if (ack.status == NATS_NO_RESPONDERS && !unknown) {
    return "stream " + settings_.stream + " takes only " + joined(subjects_) + "; add " + subject + " to its subjects";
  }
  if (ack.status == NATS_NOT_PERMITTED) return "the account may not publish to it";
  if (ack.code == JSStreamNotMatchErr) return "another stream takes it" + explain(ack.code);
  if (ack.code == JSStreamStoreFailedErr && ack.text.find("per subject") != std::string::npos)
    return ack.text + explain(ack.code);
  return "";
}

Attempt NatsSink::refused(const std::string& subject, const Ack& ack) const {
  const std::string of_it = subject_refusal(subject, ack);
  if (!of_it.empty()) return {Outcome::retry_event, subject + ": " + of_it, 0};
  const std::string text = ack.text.empty() ? status_text(ack.status) : ack.text;
  return {classify_failure(ack.status, ack.code), subject + ": " + text + explain(ack.code), 0};
}

Result<Piece> NatsSink::piece_of(const core::StoredEvent& event, NatsMessage address) const {
  natsMsg* raw = nullptr;
  const auto size = static_cast<int>(event.payload.size());
  const natsStatus status = natsMsg_Create(&raw, address.subject.c_str(), nullptr, event.payload.data(), size);
  Message message(raw);
  if (status != NATS_OK) return fail(Code::internal, "event " + event.stamp.id + ": " + natsStatus_GetText(status));
  return Piece{std::move(message), raw, std::move(address.message_id), std::move(address.subject)};
}

Result<std::shared_ptr<Parcel>> NatsSink::parcel_of(std::shared_ptr<const core::StoredEvent> event) const {
  const auto parcel = std::make_shared<Parcel>();
  parcel->broker = broker_;
  parcel->settings = {shared_, &shared_->settings};
  parcel->event = std::move(event);
  parcel->reconnects = reconnects_;
  parcel->wait = settings_.ack_wait;
  if (settings_.jetstream) parcel->stream = settings_.stream;
  const auto now = std::chrono::system_clock::now().time_since_epoch() / std::chrono::seconds(1);
  for (auto& address : messages_of(*parcel->event, settings_, settings_.jetstream ? std::to_string(now) : "")) {
    if (stored_parts_.count(address.message_id) != 0) continue;
    DRIFTD_TRY(Piece piece, piece_of(*parcel->event, std::move(address)));
    parcel->pieces.push_back(std::move(piece));
  }
  return parcel;
}

/// Queues an event for the stream. Returns an error if it cannot be made into a message; the answers go to `flight`.
Status NatsSink::publish(std::shared_ptr<const core::StoredEvent> event, const std::shared_ptr<Flight>& flight) {
  DRIFTD_TRY(auto parcel, parcel_of(std::move(event)));
  parcel->flight = flight;
  for (const auto& piece : parcel->pieces) {
    inbox_->expect(piece.key, {piece.id, piece.subject, flight, parcel->event});
  }
  flight->left = flight->parts = static_cast<int>(parcel->pieces.size());
  if (flight->left > 0) publisher_->enqueue(std::move(parcel));
  return {};
}

/// Remembers which messages of an event the stream has. An event with one refused subject is retried for ever, and its
/// stored messages are not sent again.
void NatsSink::remember_stored(const core::StoredEvent& event, const Flight& flight) {
  if (flight.attempt.outcome == Outcome::retry_event) stored_parts_.insert(flight.stored.begin(), flight.stored.end());
  const bool over = flight.attempt.outcome == Outcome::delivered || flight.attempt.outcome == Outcome::permanent;
  if (!over || stored_parts_.empty()) return;
  for (const auto& address : messages_of(event, settings_, "")) stored_parts_.erase(address.message_id);
}

Task<Attempt> NatsSink::send(core::StoredEvent event) {
  return send_shared(std::make_shared<const core::StoredEvent>(std::move(event)));
}

Task<Attempt> NatsSink::send_shared(std::shared_ptr<const core::StoredEvent> event) {
  if (closed()) co_return Attempt{Outcome::retry_sink, "no connection to NATS", 0};
  if (!settings_.jetstream) co_return co_await send_core(std::move(event));
  if (!trusted()) co_return Attempt{Outcome::retry_sink, "the stream was not checked on this connection yet", 0};
  const auto flight = std::make_shared<Flight>(core_, event->replay ? 0 : event->stamp.seq);
  const Status published = publish(event, flight);
  if (!published) flight->attempt = {Outcome::permanent, published.error().message, 0};
  // a broker that does not read delays the messages; the time counts from when they were sent
  for (bool sent = false; flight->left > 0 && !flight->over && !sent;) {
    sent = flight->sent;
    boost::system::error_code woken;
    flight->done.expires_after(settings_.ack_wait + kAckGrace);
    co_await flight->done.async_wait(asio::redirect_error(asio::use_awaitable, woken));
  }
  if (flight->left > 0) {
    inbox_->forget(flight);
    if (flight->attempt.outcome == Outcome::delivered) {
      flight->attempt = {Outcome::retry_sink, "no ack within " + std::to_string(settings_.ack_wait.count()) + " ms", 0};
    }
  }
  remember_stored(*event, *flight);
  co_return flight->attempt;
}

Task<Attempt> NatsSink::send_core(std::shared_ptr<const core::StoredEvent> event) {
  auto parcel = parcel_of(event);
  if (!parcel) co_return Attempt{Outcome::permanent, parcel.error().message, 0};
  std::shared_ptr<Parcel> queued = *parcel;
  co_await publisher_->publish(std::move(queued));
  Attempt attempt;
  for (const auto& piece : (*parcel)->pieces) {
    if (piece.status != NATS_OK) attempt = refused(piece.subject, refusal_of(**parcel, piece));
  }
  co_return attempt;
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
  const CheckedConnection before = now();
  const Inspect work(broker_, shared_, inbox_, {marks_, notes["stream_created"], checks_++});
  auto seen = co_await run_on(io_, work);
  if (!seen) co_return Answer(tl::unexpected(seen.error()));
  if (closed() || !(before == now())) {
    co_return Answer(
        fail(Code::unavailable, "NATS: the connection changed while stream " + settings_.stream + " was checked"));
  }
  checked_ = before;
  reconnects_ = seen->reconnects;
  std::optional<std::int64_t> rewind;
  if (seen->loss) rewind = seen->loss->rewind_to;
  apply_inspection(std::move(*seen), notes);
  co_return Answer(rewind);
}

void NatsSink::apply_inspection(Inspection seen, std::map<std::string, std::string>& notes) {
  notes["stream_created"] = seen.created;
  subjects_ = std::move(seen.subjects);
  max_message_ = seen.max_message;
  if (seen.warnings != warnings_ && !seen.warnings.empty()) {
    log::room("delivery").warn("sink {}: stream {}: {}", name_, settings_.stream, seen.warnings);
  }
  warnings_ = std::move(seen.warnings);
  if (!seen.loss) return;
  marks_.keep_oldest(seen.loss->marks_kept);
  stored_parts_.clear();
}

void NatsSink::note(std::map<std::string, std::string>& notes, std::int64_t settled_to) {
  if (!settings_.jetstream || !marks_read_) return;
  marks_.promise(settled_to);
  marks_.write(notes);
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
  if (!connected()) return "reconnecting";
  if (!settings_.jetstream) return "connected, core NATS";
  return "connected, stream " + settings_.stream + (warnings_.empty() ? "" : "; " + warnings_);
}

}  // namespace

Result<std::unique_ptr<core::Sink>> open_nats(std::string name, NatsSettings settings, asio::any_io_executor core,
                                              asio::any_io_executor io) {
  if (settings.servers.empty()) return fail(Code::invalid, "sink " + name + ": no servers; expected at least one URL");
  return std::make_unique<NatsSink>(std::move(name), std::move(settings), std::move(core), std::move(io));
}

}  // namespace driftd::sinks
