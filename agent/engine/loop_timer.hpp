// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/task.hpp"

namespace driftd::engine {

/// Lets one loop wait until a time, or until somebody wakes it. Each loop of a runner owns one. Core thread only.
class LoopTimer {
 public:
  using Time = asio::steady_timer::time_point;
  explicit LoopTimer(const asio::any_io_executor& core) : timer_(core) {}

  /// Returns at `when`, or earlier after wake(). Returns at once after stop(). It must outlive the task.
  Task<void> wait_until(Time when) {
    if (stopped_) co_return;
    timer_.expires_at(when);
    co_await timer_.async_wait(asio::as_tuple(asio::use_awaitable));
  }
  void wake() { timer_.cancel(); }  ///< has no effect if nobody waits
  /// The loop ends at its next step.
  void stop() {
    stopped_ = true;
    timer_.cancel();
  }
  bool stopped() const { return stopped_; }

 private:
  asio::steady_timer timer_;
  bool stopped_ = false;
};

}  // namespace driftd::engine
