// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"

namespace driftd::core {

/// A weekly span of time in which driftd may change systems by itself: `Mon-Fri 22:00-04:00 UTC`. A span whose end is
/// not after its begin ends on the next day. The zone is UTC, or `local`: that of the agent's process.
struct MaintenanceWindow {
  unsigned days = 0;               ///< bit 0: it begins on Sundays, bit 6: on Saturdays
  int begin_min = 0, end_min = 0;  ///< minutes of the day; equal: a whole day
  bool local = false;
  std::string text;  ///< as written
  friend bool operator==(const MaintenanceWindow&, const MaintenanceWindow&) = default;
};

/// Parses `[DAYS] HH:MM-HH:MM [ZONE]`. DAYS is a day, a range or a list of both (`Sat,Mon-Wed`); without it, every
/// day. ZONE is `UTC`, the default, or `local`.
Result<MaintenanceWindow> parse_window(std::string_view text);

/// Returns what the local time of this process is ahead of UTC at a moment.
std::chrono::seconds local_offset(Nanos now_ns);
/// Returns true if one of the windows is open. `local_offset` is what local time is ahead of UTC now.
bool in_window(const std::vector<MaintenanceWindow>& windows, Nanos now_ns, std::chrono::seconds local_offset);
/// Returns when the next of the windows opens, to the minute. Empty if there are none.
std::optional<Nanos> next_window(const std::vector<MaintenanceWindow>& windows, Nanos now_ns,
                                 std::chrono::seconds local_offset);

}  // namespace driftd::core
