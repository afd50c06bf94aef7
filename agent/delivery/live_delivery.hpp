// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "core/ports/sink.hpp"
#include "delivery/relay_settings.hpp"

namespace driftd::delivery {

class Cursor;
class ProgressWatch;
class SinkEndpoint;

/// Sends the events of a sink for the first time and decides what follows from each answer: settled, tried again, or a
/// dead letter. Core thread.
class LiveDelivery {
 public:
  /// The references must outlive it. `seed` is for the jitter of the retries.
  LiveDelivery(SinkRun& run, Cursor& cursor, SinkEndpoint& endpoint, ProgressWatch& progress, unsigned seed);

  /// Returns the next event to send, which is in flight from now on. Null if none is due.
  std::shared_ptr<const core::StoredEvent> take();
  /// Sends an event of take().
  Task<void> deliver(std::shared_ptr<const core::StoredEvent> event);

 private:
  /// Applies the answer to the window and to the endpoint's health.
  void settle(const core::StoredEvent& event, const core::Attempt& attempt);
  /// The answer is about this event: it waits as its schedule says, or becomes a dead letter.
  void failed(const core::StoredEvent& event, const core::Attempt& attempt);
  /// The answer may be about this event or about all of them.
  void refused(const core::StoredEvent& event, const core::Attempt& attempt);
  /// Moves the event to the dead letters and publishes `dead_letter`, except for the agent's own events.
  void make_dead_letter(const core::StoredEvent& event, int attempts, const std::string& error);
  int attempts_with(const core::StoredEvent& event) const;  ///< attempts of the event so far and this one

  SinkRun& run_;
  Cursor& cursor_;
  SinkEndpoint& endpoint_;
  ProgressWatch& progress_;
  RetrySchedule schedule_;
};

}  // namespace driftd::delivery
