// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "delivery/relay_settings.hpp"

namespace driftd::delivery {

/// Notices that events wait and none is settled, and that too many events wait behind failing ones. Each is reported
/// once, and again only after it ended. Core thread.
class ProgressWatch {
 public:
  /// The reference `run` must outlive it.
  explicit ProgressWatch(const SinkRun& run) : run_(run) {}

  /// To be called when an event is settled or has left the store.
  void progressed();
  /// To be called every few seconds. Returns true if a stall of RelaySettings::stalled_after must be reported now.
  bool must_report_stall(bool has_work);
  /// To be called every few seconds. Returns true if it must be reported now that `exceptions` reached their maximum.
  bool must_report_limit(std::size_t exceptions);
  double stalled_seconds(bool has_work) const;             ///< 0 if nothing waits
  bool stall_reported() const { return stall_reported_; }  ///< a stall was reported and has not ended

 private:
  const SinkRun& run_;
  std::optional<Time> waiting_since_;  ///< time since which events wait without progress
  bool stall_reported_ = false, limit_reported_ = false;
};

}  // namespace driftd::delivery
