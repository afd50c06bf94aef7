// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/task.hpp"
#include "core/event/event.hpp"
#include "core/ports/attempt.hpp"

namespace driftd::core {

/// How a sink wants to be retried.
struct RetryPolicy {
  bool forever = true;  ///< delays of 250 ms, doubled up to 30 s, for ever (JetStream, local sinks)
  std::vector<std::chrono::seconds> schedule;  ///< webhook: delays of the attempts for an event, then dead letter
  int max_in_flight = 256;
};

/// A receiver of events. It only sends: its runner in delivery/ stores, retries and routes. Core thread; several sends
/// may be in flight, but never two of one order key. Callbacks of client libraries post to the core thread first.
class Sink {
 public:
  virtual ~Sink() = default;
  virtual RetryPolicy policy() const = 0;
  virtual Task<Status> start() = 0;
  /// Sends one event. Returns when the outcome is known, at the latest after the sink's own time-out.
  virtual Task<Attempt> send(StoredEvent event) = 0;
  /// Does the same without a copy of the event, for a sink whose receiver is faster than copies are made. The runner
  /// calls this one.
  virtual Task<Attempt> send_shared(std::shared_ptr<const StoredEvent> event) { return send(*event); }
  /// Called after each batch of deliveries; the file sink calls fdatasync here.
  virtual Task<Status> flush() { co_return Status{}; }
  /// Returns why what was delivered since the last flush() is lost, as its worker ended or its file was removed. Empty:
  /// it is not. From that moment until begin_again() no send() makes anything durable: it might be a later event of a
  /// resource. The runner moves its cursor back once nothing is in flight. Computed from the present state, for it is
  /// asked before each send. The sink also wakes the runner (attach), unless an answer of send() or flush() does.
  virtual std::string_view unflushed_loss() const { return {}; }
  /// The runner begins at its stored cursor: nothing is in flight, and what no flush followed is sent again. Called at
  /// the start and after each move back.
  virtual void begin_again() {}
  /// Checks whether the broker lost events that it had acknowledged. Returns the seq after which all events must be
  /// sent again, empty if none was lost. Called on connect, every 60 s and when must_check() is true. `notes` is stored
  /// with the cursor.
  virtual Task<Result<std::optional<std::int64_t>>> check(std::map<std::string, std::string>& notes) {
    (void)notes;
    co_return std::optional<std::int64_t>{};
  }
  /// Returns true if check() must run before anything is sent: the connection is new, or the receiver gave an answer
  /// that should be impossible. Called before each send.
  virtual bool must_check() const { return false; }
  /// Called once, before start(). The sink calls `wake` on the core thread when its endpoint is back or must_check()
  /// became true, so that its runner does not wait for its circuit, and when it has an unflushed_loss().
  virtual void attach(std::function<void()> wake) { (void)wake; }
  /// Called before each save of the cursor: writes to `notes` what check() needs after a restart. Every event up to and
  /// including `settled_to` is settled; events that wait for their turn or a retry are above it.
  virtual void note(std::map<std::string, std::string>& notes, std::int64_t settled_to) {
    (void)notes;
    (void)settled_to;
  }
  /// Signs with these secrets from now on, the newest first. `unsupported` if the sink signs nothing, `invalid` if one
  /// of them is no key; the former ones then stay in use.
  virtual Status use_secrets(std::vector<std::string> secrets) {
    (void)secrets;
    return fail(Code::unsupported, "this type of sink signs nothing");
  }
  /// Returns when nothing is under way that only former secrets signed, at the latest after the sink's own time-out.
  virtual Task<void> former_secrets_unused() { co_return; }
  virtual Task<void> stop() = 0;
  /// One line for `driftd status`: connected, circuit open, last error.
  virtual std::string describe() const = 0;
};

}  // namespace driftd::core
