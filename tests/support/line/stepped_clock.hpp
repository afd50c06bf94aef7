// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

#include "base/clock.hpp"

namespace driftd::test {

/// The system's clocks, but the test can set the wall clock, as an operator, NTP or a resumed machine does. Any thread.
class SteppedClock final : public Clock {
 public:
  Nanos wall() const override { return system_.wall() + offset_ + passed_; }
  std::chrono::steady_clock::time_point mono() const override {
    return system_.mono() + std::chrono::nanoseconds(passed_);
  }
  /// Sets the wall clock forward or back.
  void step(std::chrono::nanoseconds by) { offset_ += by.count(); }
  /// Advances both clocks. Running timers do not notice it.
  void pass(std::chrono::nanoseconds by) { passed_ += by.count(); }

 private:
  SystemClock system_;
  std::atomic<Nanos> offset_{0}, passed_{0};
};

}  // namespace driftd::test
