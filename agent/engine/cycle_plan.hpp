// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/task.hpp"
#include "engine/loop_timer.hpp"
#include "engine/schedule.hpp"

namespace driftd::engine {

struct CycleReport;

/// Decides when the next cycle of one backend starts, and whether it reads everything. The runner owns it, and the
/// runner's cycle loop waits in it. Whatever notices that the backend may have changed calls it. Core thread only.
class CyclePlan {
 public:
  using Time = Schedule::Clock::time_point;
  CyclePlan(asio::any_io_executor core, Schedule::Millis interval) : timer_(std::move(core)), schedule_(interval) {}

  /// Starts the next cycle at once, because the backend may have changed.
  void hint();
  /// Makes the next cycle read everything, whatever its cursor says.
  void require_full() { full_next_ = true; }
  /// Both of them.
  void hint_full();
  /// Another plugin runs: what was listed before does not count any more.
  void start_over();
  /// Lists everything soon, because a watch sent records at `received` that are older than what is known. Such lists
  /// are at least a minute apart.
  void list_again(Time received);
  /// New resources were left out. Once there is room for them, everything is read.
  void note_left_out() { left_out_ = true; }
  /// While `held` is true, no cycle starts (backpressure).
  void hold(bool held);
  bool held_back() const { return held_back_; }  ///< by hold()

  /// Returns when the next cycle starts.
  Time next() const;
  /// Returns at `when`, or earlier after wake(), hint() or stop().
  Task<void> wait_until(Time when) { return timer_.wait_until(when); }
  /// Wakes whoever waits, so that it asks for the time again.
  void wake() { timer_.wake(); }
  void stop() { timer_.stop(); }

  /// What one cycle does, as it was decided when it began.
  struct Pass {
    Time began;                 ///< when the cycle began
    bool full = false;          ///< it reads everything
    std::uint64_t plugins = 0;  ///< `plugins_` at that time
  };
  /// Call it when the loop starts a cycle by itself: the hints until now are answered by it.
  void answer_hints(Time now);
  /// Call it when any cycle starts.
  void note_start(Time now) { last_began_ = now; }
  /// Decides whether a cycle reads everything: if somebody asked for it (`asked`), if it is due, or if there is room
  /// now for what was left out before.
  Pass begin(bool asked, bool has_room, Time now);
  /// Call it with the report of that cycle. Returns false if the plugin was upgraded meanwhile. Then the cycle counts
  /// for nothing, and the next one reads everything.
  bool finish(const Pass& pass, const CycleReport& report);
  /// Returns true if a full cycle of the current plugin succeeded.
  bool has_baseline() const { return last_full_ != Time{}; }

  Schedule& schedule() { return schedule_; }
  const Schedule& schedule() const { return schedule_; }

 private:
  LoopTimer timer_;
  Schedule schedule_;
  /// These are the begins of the last full cycle that succeeded, of the last cycle, and of the last one for
  /// list_again().
  Time last_full_{}, last_began_{}, relisted_at_{};
  Time relist_at_ = Time::max();  ///< from this time on, a cycle lists everything
  std::uint64_t plugins_ = 0;     ///< number of times that another plugin began to run
  bool full_next_ = true;         ///< true in a new process and after a reload: the next cycle reads everything
  bool left_out_ = false, hinted_ = false, held_back_ = false;
};

}  // namespace driftd::engine
