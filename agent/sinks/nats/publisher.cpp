// SPDX-License-Identifier: Apache-2.0
#include "sinks/nats/publisher.hpp"

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <utility>

#include "base/fatal.hpp"
#include "sinks/nats/encode.hpp"

namespace driftd::sinks {
namespace {

/// Done here and not where the message is made: it costs a third of an event's CPU time, which the core thread spends
/// on the other events.
natsStatus set_headers(const NatsHeaders& headers, const Piece& piece) {
  natsMsg* const message = piece.message.get();
  natsStatus status = natsMsgHeader_Set(message, "Nats-Msg-Id", piece.id.c_str());
  for (const auto& [name, value] : headers) {
    if (status == NATS_OK) status = natsMsgHeader_Set(message, name.c_str(), value.c_str());
  }
  return status;
}

natsStatus publish_to_stream(Parcel& parcel, Piece& piece) {
  if (parcel.broker->reconnects() != parcel.reconnects) return NATS_CONNECTION_DISCONNECTED;
  jsPubOptions options;
  jsPubOptions_Init(&options);
  options.MaxWait = parcel.wait.count();
  options.ExpectStream = parcel.stream.c_str();
  natsMsg* raw = piece.message.release();
  const natsStatus status = js_PublishMsgAsync(parcel.broker->stream.get(), &raw, &options);
  piece.message.reset(raw);  // null if the library has taken it
  return status;
}

natsStatus publish_to_core(Parcel& parcel, Piece& piece) {
  const natsStatus status = natsConnection_PublishMsg(parcel.broker->connection.get(), piece.message.get());
  if (status == NATS_OK) piece.message.reset();
  return status;
}

void publish_parcel(Parcel& parcel) {
  const NatsHeaders headers = headers_of(*parcel.event, *parcel.settings);
  for (auto& piece : parcel.pieces) {
    piece.status = set_headers(headers, piece);
    if (piece.status != NATS_OK) return;
    piece.status = parcel.stream.empty() ? publish_to_core(parcel, piece) : publish_to_stream(parcel, piece);
    if (piece.status == NATS_MAX_PAYLOAD)
      piece.max_payload = natsConnection_GetMaxPayload(parcel.broker->connection.get());
    if (piece.status != NATS_OK) return;
  }
}

void fail_all(Parcel& parcel, natsStatus status) {
  for (auto& piece : parcel.pieces) {
    if (piece.status == NATS_OK) piece.status = status;
  }
}

}  // namespace

Ack refusal_of(const Parcel& parcel, const Piece& piece) {
  Ack out;
  out.status = piece.status;
  if (piece.status != NATS_MAX_PAYLOAD) return out;
  out.text = "the message has " + std::to_string(message_bytes(*parcel.event, *parcel.settings, piece.id)) +
             " bytes with its headers, and the server takes " + std::to_string(piece.max_payload) +
             ": raise its max_payload, or `payload` of this user or account, then `driftd deadletter replay`";
  return out;
}

/// The parcels of one batch.
struct Publisher::Batch {
  explicit Batch(const asio::any_io_executor& core) : over(core, asio::steady_timer::time_point::max()) {}
  std::vector<std::shared_ptr<Parcel>> parcels;
  bool done = false;
  asio::steady_timer over;

  /// [io]
  void publish() {
    for (const auto& parcel : parcels) publish_parcel(*parcel);
    const auto last = parcels.back();  // earlier parcels may be on a replaced connection, which is closed
    // One write for the batch, and at once: by itself the library would wait 1 ms for more, or, with "send asap", write
    // each message alone. The next batch gathers until the server's PONG.
    const natsStatus flushed = natsConnection_FlushTimeout(last->broker->connection.get(), last->wait.count());
    if (!last->stream.empty()) return;  // the acknowledgements tell what arrived
    for (const auto& parcel : parcels) {
      const natsStatus status = parcel->broker == last->broker ? flushed : NATS_CONNECTION_CLOSED;
      if (status != NATS_OK) fail_all(*parcel, status);
    }
  }
};

std::shared_ptr<Publisher::Batch> Publisher::add(std::shared_ptr<Parcel> parcel) {
  if (!next_) next_ = std::make_shared<Batch>(core_);
  auto batch = next_;  // run() may take it at once
  batch->parcels.push_back(std::move(parcel));
  if (!std::exchange(running_, true)) asio::co_spawn(core_, run(shared_from_this()), fatal);
  return batch;
}

/// The answers to published messages come by themselves.
void Publisher::note_sent(Parcel& parcel) {
  if (!parcel.flight) return;
  parcel.flight->sent = true;
  for (const auto& piece : parcel.pieces) {
    if (piece.status != NATS_OK || piece.message) inbox_->answer_unpublished(piece.key, refusal_of(parcel, piece));
  }
}

Task<void> Publisher::publish(std::shared_ptr<Parcel> parcel) {
  const auto mine = add(std::move(parcel));
  boost::system::error_code woken;
  if (!mine->done) co_await mine->over.async_wait(asio::redirect_error(asio::use_awaitable, woken));
}

Task<void> Publisher::run(std::shared_ptr<Publisher> self) {
  while (self->next_) {
    const auto batch = std::exchange(self->next_, nullptr);
    auto work = [batch] {
      batch->publish();
      return true;
    };
    co_await run_on(self->io_, std::move(work));
    for (const auto& parcel : batch->parcels) self->note_sent(*parcel);
    batch->done = true;
    batch->over.cancel();
  }
  self->running_ = false;
}

}  // namespace driftd::sinks
