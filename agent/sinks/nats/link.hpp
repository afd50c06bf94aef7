// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nats/nats.h>
#include <atomic>
#include <boost/asio/steady_timer.hpp>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/task.hpp"
#include "core/event/event.hpp"
#include "core/ports/sink.hpp"

namespace driftd::sinks {

struct FreeConnection {
  void operator()(natsConnection* c) const { natsConnection_Destroy(c); }
};
struct FreeContext {
  void operator()(jsCtx* c) const { jsCtx_Destroy(c); }
};
struct FreeMessage {
  void operator()(natsMsg* m) const { natsMsg_Destroy(m); }
};
using Connection = std::unique_ptr<natsConnection, FreeConnection>;
using StreamContext = std::unique_ptr<jsCtx, FreeContext>;
using Message = std::unique_ptr<natsMsg, FreeMessage>;

/// The stream's answer to one message.
struct Ack {
  std::uint64_t stream_seq = 0;
  bool duplicate = false;
  natsStatus status = NATS_OK;
  int code = 0;  ///< JetStream error code
  std::string text;
};

/// One event in flight: its messages and the worst of their answers. Core thread.
struct Flight {
  Flight(const asio::any_io_executor& core, std::int64_t number) : done(core), event(number) {}
  asio::steady_timer done;
  std::int64_t event;       ///< its seq; 0 for a replay
  int left = 0, parts = 0;  ///< messages without an answer; all of them
  bool over = false;        ///< no further answer is awaited
  bool sent = false;        ///< its messages were given to the library
  core::Attempt attempt;
  std::set<std::string> stored;  ///< ids of the messages that the stream has, if there are several
};

/// A message that waits for its answer.
struct Expected {
  std::string id, subject;
  std::shared_ptr<Flight> flight;
  std::shared_ptr<const core::StoredEvent> event;
};

/// Receives the callbacks of nats.c, which only post to the core thread. It is kept for the life of the process,
/// because the library's threads may call once more after a connection is gone; after close() such calls do nothing.
class Inbox : public std::enable_shared_from_this<Inbox> {
 public:
  /// Core thread.
  class Reader {
   public:
    virtual ~Reader() = default;
    virtual void on_ack(const Expected& message, const Ack& ack) = 0;
    virtual void on_reconnected() = 0;
  };
  static std::shared_ptr<Inbox> make(asio::any_io_executor core);

  /// [library threads] jsPubAckHandler, natsConnectionHandler, natsErrHandler; `closure` is the Inbox.
  static void on_ack(jsCtx* context, natsMsg* message, jsPubAck* ack, jsPubAckErr* error, void* closure);
  static void on_disconnected(natsConnection* connection, void* closure);
  static void on_reconnected(natsConnection* connection, void* closure);
  static void on_closed(natsConnection* connection, void* closure);
  static void on_error(natsConnection* connection, natsSubscription* subscription, natsStatus status, void* closure);
  /// Sets the connection. Its state is remembered from callbacks, because asking the library takes the lock of the
  /// connection, which a write to a broker that does not read holds. [io]
  void watch(natsConnection* connection);
  bool up() const { return up_; }                     ///< connected, by the library's last report. Any thread
  bool closed() const { return closed_; }             ///< closed for good. Any thread
  std::uint64_t changes() const { return changes_; }  ///< number of changes of that state. Any thread

  /// Calls `reader` from now on, until close(). Core thread.
  void open(Reader& reader);
  void close();
  void expect(natsMsg* message, Expected expected);
  /// The library did not take this message, for that reason. Status NATS_OK: it was not offered, because another one of
  /// its event was refused.
  void answer_unpublished(natsMsg* message, const Ack& refusal);
  void forget(const std::shared_ptr<Flight>& flight);
  /// Ends every flight with this attempt, because its connection is gone and no answer will come.
  void give_up(const core::Attempt& attempt);
  /// Returns true if the server refused this subject since the connection was made. Any thread.
  bool denied(const std::string& subject) const;
  /// Returns the subject of our answers if the server refused the subscription to it. Empty if it did not. Any thread.
  std::string denied_reply() const;

 private:
  explicit Inbox(asio::any_io_executor core) : core_(std::move(core)) {}
  /// Handles all answers that have arrived. One call serves many, for each wakes the core thread.
  void deliver_arrived();
  void deliver(natsMsg* message, const Ack& ack);
  void changed(natsConnection* connection, bool up, bool closed);
  void answer_denied(const std::string& subject);

  mutable std::mutex mutex_;
  bool open_ = false;                             ///< guarded by mutex_
  asio::any_io_executor core_;                    ///< guarded by mutex_
  std::set<std::string> denied_;                  ///< guarded by mutex_
  natsConnection* watched_ = nullptr;             ///< guarded by mutex_
  std::vector<std::pair<Message, Ack>> arrived_;  ///< guarded by mutex_; not empty: deliver_arrived() is posted
  std::atomic<bool> up_ = false, closed_ = true;
  std::atomic<std::uint64_t> changes_ = 0;
  Reader* reader_ = nullptr;
  std::map<natsMsg*, Expected> expected_;  ///< core thread; a message lives until its answer has arrived here
};

}  // namespace driftd::sinks
