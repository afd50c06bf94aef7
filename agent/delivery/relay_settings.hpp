// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/task.hpp"
#include "core/ports/metrics.hpp"
#include "core/ports/store.hpp"
#include "delivery/schedule.hpp"

namespace driftd::delivery {

inline constexpr std::size_t kMaxExceptions = 250'000;  ///< for each sink, about 180 bytes each

/// Settings of all runners together. The times count on the monotonic clock.
struct RelaySettings {
  std::string agent, cluster = "default";  ///< names for the events that the relay publishes
  /// Returns the sinks of an agent event (dead letter, gap, parked). The sink that it is about is removed.
  std::function<std::vector<std::string>(const core::AgentEvent&)> routes;
  std::function<void()> appended;                  ///< called after the relay stored events of its own; may be empty
  std::vector<std::string> drop_pending;           ///< removed sinks whose pending events may be dropped
  Millis drain{10'000};                            ///< how long a stop waits for events in flight
  Millis check_every{60'000};                      ///< between two checks of a receiver
  Millis disable_after = std::chrono::hours(120);  ///< a webhook that only failed for this long is disabled
  Millis stalled_after{30'000};  ///< an error is logged if events wait and none was settled for this long
  /// Maximum of a sink's events in memory that failed or wait behind a failed one. At it the sink takes nothing new.
  std::size_t max_exceptions = kMaxExceptions;
  core::Metrics* metrics = nullptr;  ///< may be null; outlives the relay
  unsigned seed = 0;                 ///< seed of the jitter; 0: random
};

/// What a runner shares with its relay. It must outlive the runner.
struct SinkRunnerContext {
  asio::any_io_executor core;
  core::Outbox& outbox;
  const Clock& clock;
  RelaySettings settings;
  std::function<void()> wake_all;  ///< called after an agent event was stored
};

/// What the parts of one runner share. It belongs to the runner and outlives the parts. Core thread.
struct SinkRun {
  std::shared_ptr<SinkRunnerContext> context;
  std::string name;  ///< of the sink
  core::RetryPolicy policy;
  std::function<void()> wake;  ///< makes the runner look at its situation again
  bool stopping = false;       ///< stop() was called; nothing new is fetched unless it can be sent at once
  std::string last_error;      ///< for people; empty if nothing failed yet

  Time now() const { return context->clock.mono(); }
  Nanos wall() const { return context->clock.wall(); }
};

}  // namespace driftd::delivery
