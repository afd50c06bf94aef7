// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "core/ports/sink.hpp"
#include "delivery/cursor.hpp"
#include "delivery/endpoint_health.hpp"
#include "delivery/outage.hpp"

namespace driftd::delivery {

/// The receiver of one sink: starts and checks it, sends to it, and knows whether it can be given events. Core thread.
class SinkEndpoint {
 public:
  /// Owns the sink. The references must outlive it. `seed` is for the jitter of the circuit.
  SinkEndpoint(SinkRun& run, Cursor& cursor, std::unique_ptr<core::Sink> sink, unsigned seed);

  EndpointState state(Time now) const;  ///< the first that applies, in the order of the enum
  EndpointSituation situation(Time now) const;
  /// Returns true if it has not started or its last attempts failed.
  bool fails() const;
  /// Calls `changed` when the sink reports that it is back or must be checked.
  void attach(std::function<void()> changed) { sink_->attach(std::move(changed)); }
  /// Returns true if the sink asks for a check. Its library's threads may cause that at any moment.
  bool asks_for_check() const { return started_ && sink_->must_check(); }
  /// Returns its state for a view: if it is given no events, why and until when; else what the sink says of itself.
  std::string describe() const;
  /// Returns when the wait of its open circuit ends, as wall-clock time. 0 if no such wait holds it up.
  Nanos paused_until() const;
  const std::string& why_paused() const { return why_; }  ///< why it was disabled, or its circuit opened the last time
  std::int64_t delivered_count() const { return delivered_; }  ///< in this process, replays included

  /// Starts the sink. A failure opens the circuit; it is tried again when the circuit's wait is over.
  Task<void> start();
  /// Asks the receiver whether it still has what it acknowledged. If not, the cursor is moved back.
  Task<void> check();
  /// Sends one event and counts the attempt in the metrics.
  Task<core::Attempt> send(std::shared_ptr<const core::StoredEvent> event);
  /// Returns false if the flush failed: the cursor is then moved back, and what was not flushed is sent again.
  Task<bool> flush();
  /// As of the sink.
  Status use_secrets(std::vector<std::string> secrets) { return sink_->use_secrets(std::move(secrets)); }
  Task<void> former_secrets_unused() { return sink_->former_secrets_unused(); }
  /// Stops the sink if it was started.
  Task<void> stop();
  void restore_notes() { outage_.restore(cursor_.notes()); }                           ///< after the cursor was opened
  void write_notes() { sink_->note(cursor_.notes(), cursor_.window().settled_to()); }  ///< before a save

  /// Ends the wait of an open circuit.
  void back() { health_.back(run_.now()); }
  /// The receiver has accepted this event, of which its payload is not needed. Writes the line of the log at level
  /// debug.
  void delivered(const core::StoredEvent& event);
  /// The receiver accepted an event of this key, or refused one because of its content.
  void alive(const std::string& key);
  /// There is no connection.
  void down(const core::Attempt& attempt);
  /// The receiver gave an answer about this event; many of them open the circuit.
  void event_failed(const std::string& key);
  /// The receiver gave an answer that may be about this event or about all; returns what is to blame.
  EndpointHealth::Blame refused(const std::string& key, std::int64_t retry_after_ms);
  /// Counts an outage, and disables the sink if it only failed for too long.
  void count_outage();
  /// Gives the sink no more events until the agent restarts, and publishes `parked`. Does nothing the second time.
  void disable(const std::string& why);
  int failures(const std::string& key) const { return health_.failures(key); }  ///< without blame for the event
  /// Returns the keys that a probe should avoid; empty if no probe is due.
  std::set<std::string> keys_to_avoid() const;

 private:
  Circuit::State circuit() const { return health_.state(run_.now()); }
  /// Logs it if it was closed before, and counts the outage. The sink must be checked before it is used again.
  void circuit_opened(Circuit::State before);
  void count(Nanos recorded_ns, const core::Attempt& attempt);  ///< in the metrics, with the age of the event

  SinkRun& run_;
  Cursor& cursor_;
  std::unique_ptr<core::Sink> sink_;
  EndpointHealth health_;
  Outage outage_;
  Backoff flush_waits_;                      ///< the circuit's own wait is reset by each event that is written
  std::string why_;                          ///< why it is paused; kept when later answers replace run_.last_error
  bool started_ = false, disabled_ = false;  ///< `disabled_`: for this process
  bool checked_ = false;                     ///< since the circuit opened
  bool unflushed_ = false;                   ///< events were delivered since the last flush
  Time next_check_{};                        ///< when it is checked although nothing is wrong
  std::int64_t delivered_ = 0;
};

}  // namespace driftd::delivery
