// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <map>
#include <memory>
#include <mutex>
#include <nats/nats.h>
#include <string>

#include "base/task.hpp"
#include "core/ports/sink.hpp"

namespace driftd::sinks {

struct FreeConnection { void operator()(natsConnection* c) const { natsConnection_Destroy(c); } };
struct FreeContext { void operator()(jsCtx* c) const { jsCtx_Destroy(c); } };
struct FreeMessage { void operator()(natsMsg* m) const { natsMsg_Destroy(m); } };
using Connection = std::unique_ptr<natsConnection, FreeConnection>;
using StreamContext = std::unique_ptr<jsCtx, FreeContext>;
using Message = std::unique_ptr<natsMsg, FreeMessage>;

/// What the stream said about one message.
struct Ack {
  std::uint64_t stream_seq = 0;
  bool duplicate = false;
  natsStatus status = NATS_OK;
  int code = 0;  ///< JetStream error code
  std::string text;
};

/// One event under way: its messages and the worst that was heard of them. Core thread.
struct Flight {
  Flight(asio::any_io_executor core, std::int64_t event_seq) : done(std::move(core)), seq(event_seq) {}
  asio::steady_timer done;
  std::int64_t seq;
  int left = 0;
  core::Attempt attempt;
};

/// Where the callbacks of nats.c end: they only post to the core thread. Kept for the life of the process, because the
/// library's threads may call once more after a connection is gone; after close() they find nothing.
class Inbox : public std::enable_shared_from_this<Inbox> {
 public:
  using OnAck = void (*)(void* sink, const std::string& message_id, Flight& flight, const Ack& ack);
  static std::shared_ptr<Inbox> make(asio::any_io_executor core);

  /// [library threads] jsPubAckHandler; `closure` is the Inbox.
  static void on_ack(jsCtx* context, natsMsg* message, jsPubAck* ack, jsPubAckErr* error, void* closure);
  /// Core thread. `sink` gets the acks until close().
  void open(void* sink, OnAck handler);
  void close();
  void expect(natsMsg* message, std::string id, std::shared_ptr<Flight> flight);
  void forget(const std::shared_ptr<Flight>& flight);

 private:
  explicit Inbox(asio::any_io_executor core) : core_(std::move(core)) {}
  void deliver(natsMsg* message, const Ack& ack);

  struct Expected { std::string id; std::shared_ptr<Flight> flight; };
  std::mutex mutex_;
  bool open_ = false;           ///< guarded by mutex_
  asio::any_io_executor core_;  ///< guarded by mutex_
  void* sink_ = nullptr;
  OnAck handler_ = nullptr;
  std::map<natsMsg*, Expected> expected_;  ///< core thread; a message lives until its answer was seen here
};

}  // namespace driftd::sinks
