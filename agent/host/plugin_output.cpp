// SPDX-License-Identifier: Apache-2.0
#include "host/plugin_output.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/log.hpp"
#include "ipc/limits.hpp"
#include "ipc/messages.hpp"

namespace driftd::host {

/// Our own code sends no more than 500 metrics a second, so a flood means that the plugin has taken the worker over.
Status PluginOutput::take_metric(const ipc::Frame& frame) {
  if (!metric_flood_.try_take(RateLimiter::Clock::now())) return fail(Code::invalid, "flooded the metrics");
  const auto gauge = ipc::decode<ipc::Gauge>(frame.payload);
  if (!gauge || !declared_.contains(gauge->name))
    return fail(Code::invalid, "sent a metric that describe does not declare");
  char* end = nullptr;
  const double value = std::strtod(gauge->value.c_str(), &end);
  if (gauge->value.empty() || *end != '\0') return fail(Code::invalid, "sent a metric whose value is not a number");
  if (std::isfinite(value)) gauges_[gauge->name] = value;
  return {};
}

/// Our own code sends no more than 20 lines a second. Some more are dropped; a flood means that the plugin has taken
/// the worker over.
Status PluginOutput::take_log(const ipc::Frame& frame) {
  const auto now = RateLimiter::Clock::now();
  if (!log_flood_.try_take(now)) return fail(Code::invalid, "flooded the log");
  if (!log_rate_.try_take(now)) {
    ++lines_dropped_;
    return {};
  }
  const auto line = ipc::decode<ipc::LogLine>(frame.payload);
  if (!line) return fail(Code::invalid, "sent a log line that cannot be decoded");
  constexpr spdlog::level::level_enum kLevels[] = {spdlog::level::debug, spdlog::level::info, spdlog::level::warn,
                                                   spdlog::level::err};
  const auto level = kLevels[std::clamp(line->level, 0, 3)];
  const auto dropped = std::exchange(lines_dropped_, 0);
  log::room("host").log(level, "[{}] {}{}", backend_, scrubber_.one_line(line->text, ipc::kMaxText),
                        dropped > 0 ? fmt::format(" ({} lines before this one dropped)", dropped) : "");
  return {};
}

}  // namespace driftd::host
