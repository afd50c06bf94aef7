// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

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
  LiveDelivery(SinkRun& run, Cursor& cursor, SinkEndpoint& endpoint, ProgressWatch& progress, unsigned seed);

  /// Returns the next event to send, which is in flight from now on. Empty if none is due.
  std::optional<core::StoredEvent> take();
  /// Sends an event of take().
  Task<void> deliver(core::StoredEvent event);

 private:
  void settle(const core::StoredEvent& event, const core::Attempt& attempt);
  void failed(const core::StoredEvent& event, const core::Attempt& attempt);
  void refused(const core::StoredEvent& event, const core::Attempt& attempt);
  void make_dead_letter(const core::StoredEvent& event, int attempts, const std::string& error);
  int attempts_with(const core::StoredEvent& event) const;

  SinkRun& run_;
  Cursor& cursor_;
  SinkEndpoint& endpoint_;
  ProgressWatch& progress_;
  RetrySchedule schedule_;
};

}  // namespace driftd::delivery
