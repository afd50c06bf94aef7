// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/task.hpp"
#include "core/event/event.hpp"
#include "sinks/nats/broker.hpp"
#include "sinks/nats/link.hpp"
#include "sinks/nats/settings.hpp"

namespace driftd::sinks {

/// One message to publish.
struct Piece {
  Message message;         ///< without headers until it is published; null afterwards: the library owns it then
  natsMsg* key = nullptr;  ///< identifies its acknowledgement
  std::string id, subject;
  natsStatus status = NATS_OK;
  std::int64_t max_payload = 0;  ///< of the server, if `status` says that the message is above it
};

/// The messages of one event. After one that fails, no further one is published.
struct Parcel {
  std::shared_ptr<Broker> broker;
  std::shared_ptr<Flight> flight;  ///< JetStream: gets the answers
  std::shared_ptr<const core::StoredEvent> event;
  std::shared_ptr<const NatsSettings> settings;
  /// JetStream: number of the connection on which the stream was checked; nothing is published on any other.
  std::uint64_t reconnects = 0;
  std::string stream;                 ///< empty: core NATS
  std::chrono::milliseconds wait{0};  ///< maximum wait for the acknowledgement; for core NATS, for the answer to the
                                      ///< flush
  std::vector<Piece> pieces;
};

/// Returns why a piece was not published, in words if the library's status does not say it.
Ack refusal_of(const Parcel& parcel, const Piece& piece);

/// Publishes on io threads, one batch at a time. A write to a broker that does not read blocks in the kernel with the
/// lock of its connection held. That may block one io thread but never the core thread, so the core thread calls
/// nothing that takes this lock. Core thread.
class Publisher : public std::enable_shared_from_this<Publisher> {
 public:
  Publisher(asio::any_io_executor core, asio::any_io_executor io, std::shared_ptr<Inbox> inbox)
      : core_(std::move(core)),
        io_(std::move(io)),
        inbox_(std::move(inbox)) {}
  /// Core NATS: returns once the server has all pieces, or one was refused. One flush covers all parcels that arrived
  /// while the previous one was under way.
  Task<void> publish(std::shared_ptr<Parcel> parcel);
  /// JetStream: returns at once. Flight::sent says that the library has the pieces; the inbox answers each one that was
  /// not published.
  void enqueue(std::shared_ptr<Parcel> parcel) { add(std::move(parcel)); }

 private:
  struct Batch;
  std::shared_ptr<Batch> add(std::shared_ptr<Parcel> parcel);  ///< returns the batch that has it
  static Task<void> run(std::shared_ptr<Publisher> self);
  void note_sent(Parcel& parcel);

  asio::any_io_executor core_, io_;
  std::shared_ptr<Inbox> inbox_;
  std::shared_ptr<Batch> next_;
  bool running_ = false;
};

}  // namespace driftd::sinks
