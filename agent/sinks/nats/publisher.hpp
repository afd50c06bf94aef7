// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/task.hpp"
#include "sinks/nats/broker.hpp"

namespace driftd::sinks {

/// One message to publish.
struct Piece {
  Message message;         ///< null once it is published: the library owns it then
  natsMsg* key = nullptr;  ///< identifies its acknowledgement
  std::string id, subject;
  std::size_t bytes = 0;  ///< with its headers
  natsStatus status = NATS_OK;
  std::int64_t max_payload = 0;  ///< of the server, if `status` says that the message is above it
};

/// The messages of one event. After one that fails, no further one is published.
struct Parcel {
  std::shared_ptr<Broker> broker;
  /// JetStream: number of the connection on which the stream was checked; nothing is published on any other.
  std::uint64_t reconnects = 0;
  std::string stream;                 ///< empty: core NATS
  std::chrono::milliseconds wait{0};  ///< maximum wait for the acknowledgement; for core NATS, for the answer to the
                                      ///< flush
  std::vector<Piece> pieces;
};

/// Publishes on io threads, one batch at a time. A write to a broker that does not read blocks in the kernel with the
/// lock of its connection held. That may block one io thread but never the core thread, so the core thread calls
/// nothing that takes this lock. Core thread.
class Publisher : public std::enable_shared_from_this<Publisher> {
 public:
  Publisher(asio::any_io_executor core, asio::any_io_executor io) : core_(std::move(core)), io_(std::move(io)) {}
  /// Returns once all pieces were given to the library, or one was refused. One flush covers all parcels that arrived
  /// while the previous one was under way. Core NATS: the server has them then.
  Task<void> publish(std::shared_ptr<Parcel> parcel);

 private:
  struct Batch;
  static Task<void> run(std::shared_ptr<Publisher> self);

  asio::any_io_executor core_, io_;
  std::shared_ptr<Batch> next_;
  bool running_ = false;
};

}  // namespace driftd::sinks
