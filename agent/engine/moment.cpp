// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>

#include "engine/extras.hpp"

namespace driftd::engine {
namespace {

using std::chrono::nanoseconds;

constexpr nanoseconds kMaxSlew = std::chrono::milliseconds(100);  // a larger difference means that the clock was set

/// Returns by how much the wall clock moved more than the monotonic one.
nanoseconds step(const Moment& from, const Moment& to) {
  return nanoseconds(to.wall - from.wall) - (to.mono - from.mono);
}

/// Converts a wall-clock time to the monotonic clock. Empty if the wall clock was set between `before` and `now`, or if
/// the time is implausible.
std::optional<Moment::Mono> from_wall_clock(Nanos observed_ns, const Moment& before, const Moment& now) {
  const nanoseconds set = step(before, now);
  if (set > kMaxSlew || set < -kMaxSlew || observed_ns <= 0 || observed_ns > now.wall) return std::nullopt;
  const nanoseconds age(now.wall - observed_ns);
  if (age > now.mono.time_since_epoch()) return std::nullopt;  // before this machine started
  return now.mono - age;
}

}  // namespace

Moment::Mono Moment::asked_at(Nanos observed_ns, const Moment& began, const Moment& now) {
  return std::max(began.mono, from_wall_clock(observed_ns, began, now).value_or(began.mono));
}

Moment::Mono Moment::received_at(Nanos observed_ns, const Moment& before, const Moment& now) {
  return from_wall_clock(observed_ns, before, now).value_or(now.mono);
}

}  // namespace driftd::engine
