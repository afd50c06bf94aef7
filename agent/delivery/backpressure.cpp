// SPDX-License-Identifier: Apache-2.0
#include "delivery/backpressure.hpp"

#include <algorithm>

namespace driftd::delivery {
namespace {

constexpr double kWarnAt = 0.7;
constexpr double kStretchAt = 0.85;
constexpr double kHoldAt = 0.95;
constexpr int kIntervalFactor = 4;

}  // namespace

Backpressure backpressure(const core::Outbox::Backlog& backlog, const BacklogLimits& limits) {
  const double events = static_cast<double>(backlog.events) / static_cast<double>(limits.events);
  const double bytes = static_cast<double>(backlog.bytes) / static_cast<double>(limits.bytes);
  Backpressure out;
  out.fullness = std::max(events, bytes);
  out.warn = out.fullness >= kWarnAt;
  out.interval_factor = out.fullness >= kStretchAt ? kIntervalFactor : 1;
  out.holds_cycles = out.fullness >= kHoldAt;
  return out;
}

}  // namespace driftd::delivery
