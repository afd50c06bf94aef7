// SPDX-License-Identifier: Apache-2.0
#include "base/clock.hpp"

#include <cstdio>
#include <ctime>

namespace driftd {

Nanos SystemClock::wall() const {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::string render_time(Nanos wall) {
  const std::time_t seconds = static_cast<std::time_t>(wall / 1'000'000'000);
  const int millis = static_cast<int>(wall / 1'000'000 % 1000);
  std::tm tm{};
  gmtime_r(&seconds, &tm);
  char day[32];
  std::strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &tm);
  char out[48];
  std::snprintf(out, sizeof out, "%s.%03dZ", day, millis);
  return out;
}

}  // namespace driftd
