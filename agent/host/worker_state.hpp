// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <set>
#include <string_view>

#include "base/task.hpp"

namespace driftd::host {

/// How the worker of a supervisor fares.
enum class WorkerState {
  starting,    ///< it is being started, or is not open yet
  running,     ///< a process that takes calls
  in_process,  ///< threads of this process that take calls
  backoff,     ///< it ended; the next one starts after a pause
  parked,      ///< it crashed too often; the next one starts after a long pause, or by resume()
  stopped,     ///< final
};

/// Returns the state as core::WorkerStatus shows it: `in-process`.
std::string_view render(WorkerState state);

/// The state of a supervisor's worker, for whose changes coroutines wait. Owned by the Supervisor, which must outlive
/// the waiting. Core thread.
class WorkerStateSignal {
 public:
  explicit WorkerStateSignal(asio::any_io_executor core) : core_(std::move(core)) {}
  WorkerState get() const { return state_; }
  bool is(WorkerState state) const { return state_ == state; }
  bool takes_calls() const { return is(WorkerState::running) || is(WorkerState::in_process); }
  void set(WorkerState state);
  void wake();  ///< ends all waiting without a change
  /// Waits for the next change, `timeout` at most.
  Task<void> wait(std::chrono::milliseconds timeout);

 private:
  const asio::any_io_executor core_;
  WorkerState state_ = WorkerState::starting;
  std::set<asio::steady_timer*> waiters_;  ///< cancelled at each change
};

}  // namespace driftd::host
