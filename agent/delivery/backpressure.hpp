// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ports/store.hpp"

namespace driftd::delivery {

/// How much may wait undelivered in the store (delivery.max_backlog_events, delivery.max_backlog_bytes).
struct BacklogLimits {
  std::int64_t events = 0, bytes = 0;  ///< both above 0
};

/// What the number of undelivered events demands of the cycles (docs/delivery.md, backpressure).
struct Backpressure {
  double fullness = 0;        ///< 1: as much waits as may wait
  bool warn = false;          ///< it is logged
  int interval_factor = 1;    ///< intervals are stretched by this factor
  bool holds_cycles = false;  ///< nothing is read or committed, so that the backlog does not grow
};

/// Returns the backpressure of `backlog`. The fuller of the two limits decides.
Backpressure backpressure(const core::Outbox::Backlog& backlog, const BacklogLimits& limits);

}  // namespace driftd::delivery
