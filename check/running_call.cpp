// SPDX-License-Identifier: Apache-2.0
#include "check/running_call.hpp"

#include <fmt/format.h>

#include <utility>

#include "check/check.hpp"
#include "check/guarded_call.hpp"

namespace driftd::check {

void WakeGate::wake(const std::function<void()>& wake) {
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    ++waking_;
  }
  wake();
  const std::lock_guard lock(mutex_);
  --waking_;
  changed_.notify_all();
}

bool WakeGate::close() {
  std::unique_lock lock(mutex_);
  closed_ = true;
  return changed_.wait_for(lock, kGrace, [this] { return waking_ == 0; });
}

bool WakeGate::closed() const {
  const std::lock_guard lock(mutex_);
  return closed_;
}

RunningCall::RunningCall(std::shared_ptr<HostCall> call, std::function<void()> wake, Body body,
                         std::function<void()> finished)
    : call_(std::move(call)),
      wake_(std::move(wake)),
      name_(name_of(call_->function)) {
  job_ = Job::start([call = call_, name = name_, body = std::move(body), finished = std::move(finished)] {
    const driftd_call handle = call->begin();
    call_guarded(call->trace, name, [&] { return body(handle, call->trace); });
    call->end();
    finished();
  });
}

void RunningCall::cancel() const {
  call_->cancel();
  (void)Job::start(wake_);
}

CallTrace RunningCall::wait() {
  constexpr std::chrono::milliseconds kSlice{20};
  std::chrono::milliseconds over{0};
  bool woken = false;
  while (!job_->wait(kSlice)) {
    if (!call_->over() && !call_->finishing()) continue;
    if (call_->over() && !std::exchange(woken, true)) cancel();
    over += kSlice;
    if (over < kGrace) continue;
    throw RuleBroken(
        fmt::format("{} did not return within {} ms after {}; look at cancelled() between steps, wait on "
                    "cancel_fd() and never without a time limit",
                    name_, kGrace.count(), reason()));
  }
  return call_->trace;
}

std::string RunningCall::reason() const {
  const auto& at = call_->faults.cancel_at;
  if (!call_->over()) return "emit answered FINISH_SOON";
  if (at)
    return *at == 0 ? "it was called, cancelled already" : fmt::format("it was cancelled at host function {}", *at);
  return mono_ns() >= call_->deadline_ns() ? "its deadline" : "it was cancelled";
}

}  // namespace driftd::check
