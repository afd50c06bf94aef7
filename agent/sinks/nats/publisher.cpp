// SPDX-License-Identifier: Apache-2.0
#include "sinks/nats/publisher.hpp"

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <utility>

#include "base/fatal.hpp"

namespace driftd::sinks {
namespace {

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
  for (auto& piece : parcel.pieces) {
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

Task<void> Publisher::publish(std::shared_ptr<Parcel> parcel) {
  if (!next_) next_ = std::make_shared<Batch>(core_);
  const auto mine = next_;
  mine->parcels.push_back(std::move(parcel));
  if (!std::exchange(running_, true)) asio::co_spawn(core_, run(shared_from_this()), fatal);
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
    batch->done = true;
    batch->over.cancel();
  }
  self->running_ = false;
}

}  // namespace driftd::sinks
