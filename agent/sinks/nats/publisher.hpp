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
  Message message;         ///< until it is published; then the library has it
  natsMsg* key = nullptr;  ///< as which its acknowledgement comes
  std::string id, subject;
  natsStatus status = NATS_OK;
};

/// The messages of one event. Behind one that fails none is published.
struct Parcel {
  std::shared_ptr<Broker> broker;
  /// JetStream: of the connection on which the stream was looked at; on no other one it is published
  std::uint64_t reconnects = 0;
  std::string stream;                 ///< empty: core NATS
  std::chrono::milliseconds wait{0};  ///< for the acknowledgement; of core NATS for the answer to the flush
  std::vector<Piece> pieces;
};

/// Publishes on io threads, one piece of work at a time: whoever writes to a broker that does not read waits in the
/// kernel, with the lock of its connection. That may be one io thread, never the core thread; so the core thread calls
/// nothing that takes that lock either. Core thread.
class Publisher : public std::enable_shared_from_this<Publisher> {
 public:
  Publisher(asio::any_io_executor core, asio::any_io_executor io) : core_(std::move(core)), io_(std::move(io)) {}
  /// Returns when all pieces were given to the library, or one was refused. Core NATS: when the server has them; one
  /// flush answers for all parcels that came while the one before was under way.
  Task<void> publish(std::shared_ptr<Parcel> parcel);

 private:
  struct Load;
  static Task<void> run(std::shared_ptr<Publisher> self);

  asio::any_io_executor core_, io_;
  std::shared_ptr<Load> next_;
  bool running_ = false;
};

}  // namespace driftd::sinks
