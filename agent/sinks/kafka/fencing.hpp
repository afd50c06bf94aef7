// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <deque>

namespace driftd::sinks {

/// Decides whether a sink may take back its transactional id from another producer. A single loss may have been a
/// transaction that took too long, so it may; two agents with one id would take it from each other for ever, so the one
/// that lost it three times within ten minutes gives up. Not thread-safe.
class Fencing {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// Notes that the id was lost. Returns true if it must not be taken back.
  bool lost(Time now) {
    losses_.push_back(now);
    while (now - losses_.front() > kWithin) losses_.pop_front();
    return losses_.size() >= kMaxLosses;
  }

 private:
  static constexpr std::size_t kMaxLosses = 3;
  static constexpr std::chrono::minutes kWithin{10};

  std::deque<Time> losses_;
};

}  // namespace driftd::sinks
