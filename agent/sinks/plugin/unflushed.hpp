// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>

namespace driftd::sinks {

/// Which workers delivered events that no flush followed: those events end with their worker. While there are any, only
/// the first of these workers may be given events, because another one could make a later event of a resource durable
/// before an earlier one. If that worker ends, everything unflushed is lost at once: the runner moves its cursor back
/// and calls forget() when nothing is under way (docs/delivery.md, flush). Core thread.
class Unflushed {
 public:
  void delivered(std::uint64_t worker) { workers_.insert(worker); }
  /// The number of the only worker that may be given events and flush; 0: any may.
  std::uint64_t holder() const {
    const std::uint64_t later = workers_.empty() ? 0 : *workers_.begin();
    if (flushing_.empty()) return later;
    return later == 0 ? *flushing_.begin() : std::min(later, *flushing_.begin());
  }
  /// Begins a flush. Returns the workers whose events it is about. Never two at once.
  std::set<std::uint64_t> begin_flush() { return flushing_ = std::exchange(workers_, {}); }
  /// After a failure everything stays unflushed.
  void end_flush(bool flushed) {
    if (!flushed) workers_.merge(flushing_);
    flushing_.clear();
  }
  /// Everything unflushed is sent again.
  void forget() {
    workers_.clear();
    flushing_.clear();
  }

 private:
  std::set<std::uint64_t> workers_, flushing_;  ///< numbers rise, so the first one of both began first
};

}  // namespace driftd::sinks
