// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/task.hpp"
#include "core/resource.hpp"
#include "engine/health_smoothing.hpp"
#include "engine/loop_timer.hpp"

namespace driftd::core {
class Session;
}

namespace driftd::engine {

class CycleHistory;
class Ledger;
struct Context;

/// Probes the health of one backend again and again, smooths it, and commits each change with its event. The runner
/// owns it and runs its loop beside the cycles: it needs no lock, because it changes only the health in the row. Core
/// thread only.
class HealthMonitor {
 public:
  /// Called with the system identity of each probe that was answered.
  using IdentityHandler = std::function<void(const std::string& identity)>;
  /// The references must outlive it. A backend that answers is degraded while its last cycle in `history` failed.
  HealthMonitor(std::shared_ptr<Context> context, Ledger& ledger, core::Session& session, const CycleHistory& history,
                IdentityHandler on_identity);

  /// The loop. It returns after stop(); its caller keeps the monitor alive until then.
  Task<void> run();
  /// Probes now.
  void wake() { timer_.wake(); }
  void stop() { timer_.stop(); }
  /// The last report, with the smoothed state.
  core::HealthReport report() const;

 private:
  Task<void> probe();  ///< asks once and publishes what follows
  Task<void> publish(HealthSmoothing::Notice notice, core::HealthReport report);  ///< commits the state with its event

  std::shared_ptr<Context> context_;
  Ledger& ledger_;
  core::Session& session_;
  const CycleHistory& history_;
  IdentityHandler on_identity_;
  LoopTimer timer_;
  HealthSmoothing smoothing_;
  core::HealthReport last_;          ///< not smoothed
  std::uint64_t restarts_seen_ = 0;  ///< of the worker
};

}  // namespace driftd::engine
