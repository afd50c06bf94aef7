// SPDX-License-Identifier: Apache-2.0
#include "controller/settings.hpp"

#include <array>
#include <utility>

namespace driftd::controller {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

struct TimeRange {
  const char* name;
  Duration value, min, max;
};
struct CountRange {
  const char* name;
  int value, min, max;
};

std::string wrong(const char* name, const std::string& expected, const std::string& found) {
  return std::string(name) + ": expected " + expected + ", found " + found + "; correct the setting";
}

}  // namespace

std::string render(Duration time) {
  constexpr std::array<std::pair<Duration, const char*>, 5> kUnits = {
      {{hours(1), " h"}, {minutes(1), " min"}, {seconds(1), " s"}, {milliseconds(1), " ms"}, {Duration(1), " ns"}}};
  if (time == Duration::zero()) return "0 s";
  for (const auto& [unit, name] : kUnits) {
    if (time % unit == Duration::zero()) return std::to_string(time / unit) + name;
  }
  return std::to_string(time.count()) + " ns";
}

Status check(const Settings& settings) {
  const TimeRange times[] = {
      {"reconciliation_timeout", settings.reconciliation_timeout, milliseconds(1), hours(24)},
      {"scheduler_interval", settings.scheduler_interval, milliseconds(10), hours(24)},
      {"cleanup_interval", settings.cleanup_interval, milliseconds(10), hours(24 * 7)},
      {"watch_interval", settings.watch_interval, milliseconds(10), hours(24)},
      {"retry_first", settings.retry_first, milliseconds(1), hours(1)},
      {"retry_max", settings.retry_max, milliseconds(1), hours(24)},
      {"resync_pace", settings.resync_pace, Duration::zero(), seconds(10)},
  };
  for (const auto& [name, value, min, max] : times) {
    if (value < min || value > max)
      return tl::unexpected(wrong(name, render(min) + " to " + render(max), render(value)));
  }
  const CountRange counts[] = {
      {"max_retry_attempts", settings.max_retry_attempts, 1, 1'000},
      {"workers", settings.workers, 1, 256},
      {"retry_rate", settings.retry_rate, 1, 100'000},
      {"retry_burst", settings.retry_burst, 1, 1'000'000},
  };
  for (const auto& [name, value, min, max] : counts) {
    if (value < min || value > max)
      return tl::unexpected(wrong(name, std::to_string(min) + " to " + std::to_string(max), std::to_string(value)));
  }
  if (settings.retry_max < settings.retry_first) {
    return tl::unexpected(
        wrong("retry_max", "at least retry_first, " + render(settings.retry_first), render(settings.retry_max)));
  }
  return {};
}

}  // namespace driftd::controller
