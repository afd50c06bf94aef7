// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "controller/key.hpp"

namespace driftd::controller {

// In each struct the first members are those of the resource-watcher RFC, under its names.

struct WatcherMetrics {
  bool is_watching = false;
  std::size_t cached_resources = 0;
  Duration watch_interval{};
  std::uint64_t events_published = 0;
  std::size_t change_handlers = 0;

  std::uint64_t changes = 0;
  std::uint64_t publish_failures = 0;  ///< events that are lost
  std::uint64_t handler_failures = 0;  ///< a handler threw
  std::string last_publish_error;      ///< empty if the last event was published
};

struct ControllerMetrics {
  std::uint64_t reconciliations_total = 0;       ///< attempts that ended or ran out of time, finalizations included
  std::uint64_t reconciliations_successful = 0;  ///< Success and RequeueAfter
  std::uint64_t reconciliations_failed = 0;      ///< Failed, exceptions and time-outs
  Duration average_reconciliation_duration{};
  std::size_t pending_reconciliations = 0;  ///< keys that are due, or wait for their next attempt

  std::uint64_t reconciliations_requeued = 0;     ///< Requeue: total = successful + failed + requeued + interrupted
  std::uint64_t reconciliations_interrupted = 0;  ///< by stop()
  std::uint64_t exceptions = 0, timeouts = 0, finalizations = 0;
  std::uint64_t retries = 0;             ///< attempts after the first
  std::uint64_t given_up = 0;            ///< times that a key became Failed
  std::size_t failed_keys = 0;           ///< now
  std::size_t scheduled = 0;             ///< keys that wait for a later time (RequeueAfter)
  std::size_t running = 0, overdue = 0;  ///< calls now; of those, past their deadline
  Duration oldest_waiting{};             ///< how long the key is due that is due longest
  Duration longest_running{};
};

struct SchedulerMetrics {
  bool running = false;
  Duration scheduler_interval{};
  std::map<std::string, std::size_t> instances_by_phase;
  std::size_t processed_this_cycle = 0;  ///< keys that the last resync handed over

  std::uint64_t cycles = 0, cleanups = 0, polls = 0;
  std::uint64_t failures = 0;  ///< of the three, and of the count by phase
  std::string last_error;      ///< empty if there was none
  Duration longest_running{};  ///< of the jobs that run now
};

}  // namespace driftd::controller
