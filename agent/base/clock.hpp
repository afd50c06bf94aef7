// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace driftd {

using Nanos = std::int64_t;  ///< wall clock, nanoseconds since the Unix epoch

/// The two clocks. [any thread] Schedules use mono(), records and events use wall().
class Clock {
 public:
  virtual ~Clock() = default;
  virtual Nanos wall() const = 0;                                  ///< may jump when somebody sets the clock
  virtual std::chrono::steady_clock::time_point mono() const = 0;  ///< never goes back
};

/// The clocks of the system.
class SystemClock final : public Clock {
 public:
  Nanos wall() const override;
  std::chrono::steady_clock::time_point mono() const override { return std::chrono::steady_clock::now(); }
};

/// RFC 3339 UTC with milliseconds, `2026-11-21T03:39:16.123Z`.
std::string render_time(Nanos wall);

}  // namespace driftd
