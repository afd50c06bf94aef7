// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "base/task.hpp"
#include "engine/extras.hpp"
#include "engine/loop_timer.hpp"

namespace driftd::core {
class Session;
struct RecordPage;
}  // namespace driftd::core

namespace driftd::engine {

class CyclePlan;
class Ledger;
struct Context;

/// Keeps the watch of one backend running: it starts it after the first full cycle, starts it again whenever it ends,
/// and hands over its pages as they arrive. The runner owns it and runs its loop beside the cycles. Core thread only.
class WatchLoop {
 public:
  /// Judges a page while no cycle runs. `before` is when the watch gave its previous page, or began; `received` is when
  /// it gave this one.
  using Judge = std::function<Task<Status>(core::RecordPage page, Moment before, Moment received)>;
  /// The references must outlive it.
  WatchLoop(std::shared_ptr<Context> context, Ledger& ledger, core::Session& session, CyclePlan& plan, Judge judge);

  /// The loop. It returns after stop(), when the session has ended its watch; its caller keeps the object alive until
  /// then.
  Task<void> run();
  /// Looks now whether the watch can be started.
  void wake() { timer_.wake(); }
  void stop() { timer_.stop(); }

 private:
  Task<Status> process_page(core::RecordPage page);  ///< an empty page without a cursor is only a hint
  bool can_watch() const;                            ///< there is a baseline, and the provider has a watch

  std::shared_ptr<Context> context_;
  Ledger& ledger_;
  core::Session& session_;
  CyclePlan& plan_;
  Judge judge_;
  LoopTimer timer_;
  Moment last_page_;  ///< when the watch gave its last page, or began
};

}  // namespace driftd::engine
