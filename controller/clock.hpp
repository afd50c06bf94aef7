// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <mutex>

#include "controller/key.hpp"

namespace driftd::controller {

/// What the runtime knows about time. A test has a clock of its own, and calls the steps of Controller and Scheduler
/// itself instead of starting their threads. Any thread.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual Time now() const = 0;  ///< never goes back
  virtual std::chrono::system_clock::time_point wall() const = 0;
  /// Returns at `until`, when `changed` is notified, or without a reason. Time::max() is never reached.
  virtual void wait_until(std::unique_lock<std::mutex>& lock, std::condition_variable& changed, Time until) const = 0;
};

class SystemClock final : public Clock {
 public:
  Time now() const override;
  std::chrono::system_clock::time_point wall() const override;
  void wait_until(std::unique_lock<std::mutex>& lock, std::condition_variable& changed, Time until) const override;
};

}  // namespace driftd::controller
