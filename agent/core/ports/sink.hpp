// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/task.hpp"
#include "core/event/event.hpp"

namespace driftd::core {

/// What became of one attempt to deliver one event.
struct Attempt {
  enum class Outcome {
    delivered,    ///< acknowledged by the receiver
    retry_event,  ///< this event failed; burns an attempt of its schedule
    retry_sink,   ///< the endpoint failed, no doubt (no connection); opens the circuit, burns none
    refused,  ///< an answer that may be about this event or about all: the lane finds out which (delivery/endpoint.hpp)
    permanent,  ///< the receiver refuses this event for ever: dead letter
    disabled    ///< the receiver asked never to be called again (HTTP 410)
  };
  Outcome outcome = Outcome::delivered;
  std::string detail;               ///< `HTTP 503 from ops`, `no ack within 5 s`; no secrets
  std::int64_t retry_after_ms = 0;  ///< obeyed, capped at 1 h
};

/// How a sink wants to be retried.
struct RetryPolicy {
  bool forever = true;                         ///< 250 ms ×2 → 30 s, for ever (JetStream, local sinks)
  std::vector<std::chrono::seconds> schedule;  ///< webhook: about the event, then dead letter
  int max_in_flight = 256;
};

/// Where events go. Only sends: no store, no retries, no routing. Core thread; several sends may be in flight, never
/// two of one order key. Callbacks of client libraries post to the core thread first.
class Sink {
 public:
  virtual ~Sink() = default;
  virtual RetryPolicy policy() const = 0;
  virtual Task<Status> start() = 0;
  /// Sends one event; returns when its fate is known, at the latest after the sink's own time-out.
  virtual Task<Attempt> send(StoredEvent event) = 0;
  /// Called after each batch of deliveries: file fdatasync. Default nothing.
  virtual Task<Status> flush() { co_return Status{}; }
  /// A broker that went backwards: sequence numbers of ours that must be sent again, all after the returned seq;
  /// nothing: all is well. Called on connect, every 60 s and when must_check() says so. `notes` is kept with the
  /// cursor.
  virtual Task<Result<std::optional<std::int64_t>>> check(std::map<std::string, std::string>& notes) {
    (void)notes;
    co_return std::optional<std::int64_t>{};
  }
  /// Returns true if nothing may be sent before check() has looked: the connection is a new one, or the receiver gave
  /// an answer that it should not have been able to give. Asked before each send.
  virtual bool must_check() const { return false; }
  /// Called once, before start(). The sink calls `wake` on the core thread when its endpoint came back or must_check()
  /// became true: the lane then looks at once instead of waiting for its circuit.
  virtual void attach(std::function<void()> wake) { (void)wake; }
  /// Called before each save of the cursor: what check() will want to know after a restart. Every event up to and
  /// including `settled_to` is settled; those that wait for their turn or for a retry are above it.
  virtual void note(std::map<std::string, std::string>& notes, std::int64_t settled_to) {
    (void)notes;
    (void)settled_to;
  }
  virtual Task<void> stop() = 0;
  /// One line for `driftd status`: connected, circuit open, last error.
  virtual std::string describe() const = 0;
};

}  // namespace driftd::core
