// SPDX-License-Identifier: Apache-2.0
#include "host/worker_state.hpp"

#include <boost/asio/redirect_error.hpp>

namespace driftd::host {
namespace {

/// Registers a timer, and removes it on every way out.
struct Waiting {
  std::set<asio::steady_timer*>& list;
  asio::steady_timer* timer;
  Waiting(std::set<asio::steady_timer*>& l, asio::steady_timer* t) : list(l), timer(t) { list.insert(timer); }
  ~Waiting() { list.erase(timer); }
};

}  // namespace

std::string_view render(WorkerState state) {
  switch (state) {
    case WorkerState::starting:
      return "starting";
    case WorkerState::running:
      return "running";
    case WorkerState::in_process:
      return "in-process";
    case WorkerState::backoff:
      return "backoff";
    case WorkerState::parked:
      return "parked";
    case WorkerState::stopped:
      return "stopped";
  }
  return {};
}

void WorkerStateSignal::set(WorkerState state) {
  state_ = state;
  wake();
}

void WorkerStateSignal::wake() {
  for (auto* timer : waiters_) timer->cancel();
}

Task<void> WorkerStateSignal::wait(std::chrono::milliseconds timeout) {
  asio::steady_timer timer(core_, timeout);
  const Waiting waiting(waiters_, &timer);
  boost::system::error_code woken;  // a change of state cancels the timer
  co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, woken));
}

}  // namespace driftd::host
