// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>

#include "base/backoff.hpp"
#include "base/clock.hpp"
#include "core/ports/worker.hpp"
#include "host/host.hpp"

namespace driftd::host {

/// Remembers the crashes of a backend's workers and decides how long to wait before the next one: a pause that grows,
/// or a parking time after too many crashes within ten minutes. Owned by a Supervisor. Core thread.
class CrashHistory {
 public:
  using Time = std::chrono::steady_clock::time_point;
  explicit CrashHistory(const HostOptions& options);

  void note_open(Time now) { open_since_ = now; }  ///< the worker takes calls
  /// Counts a crash. Returns true if the worker must be parked. If the worker had been open for a minute, the pauses
  /// begin again with the shortest.
  bool add(Time now);
  /// Notes that the worker is parked from `wall`, in nanoseconds since the epoch.
  void park(Nanos wall);
  /// Returns how long to wait before the next worker is started: the parking time if the worker is parked, else the
  /// next pause.
  std::chrono::milliseconds next_wait();
  void note_restart();  ///< the wait is over; ends the parking

  Nanos parked_until() const { return parked_until_; }  ///< 0: not parked
  /// Adds the crashes of the last ten minutes, the restarts and the end of the parking to a status.
  void add_to(core::WorkerStatus& status, Time now) const;

 private:
  const std::chrono::milliseconds parking_time_;
  const std::size_t crashes_to_park_;
  Backoff backoff_;
  std::deque<Time> crashes_;  ///< at most ten minutes before the last one; oldest first
  Time open_since_{};         ///< when a worker was last opened; zero after a crash
  Nanos parked_until_ = 0;
  std::uint64_t restarts_ = 0;
};

}  // namespace driftd::host
