// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "check/host.hpp"
#include "check/job.hpp"

namespace driftd::check {

/// Wakes an instance as long as it is not closed, so that a late wake touches no closed instance. [any thread]
class WakeGate {
 public:
  void wake(const std::function<void()>& wake);  ///< does nothing after close
  /// Prevents further wakes and waits for those in progress. Returns false if one does not return within kGrace.
  bool close();
  bool closed() const;

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  int waking_ = 0;
  bool closed_ = false;
};

/// A call in progress on a thread of the pool. It belongs to the thread that started it.
class RunningCall {
 public:
  using Body = std::function<driftd_status(driftd_call, CallTrace&)>;
  /// Starts `body`. `wake` wakes the instance. `finished` runs when the body has returned.
  RunningCall(std::shared_ptr<HostCall> call, std::function<void()> wake, Body body, std::function<void()> finished);
  HostCall& call() const { return *call_; }
  bool returned() const { return job_->done(); }
  bool returned_within(std::chrono::milliseconds time_limit) const { return job_->wait(time_limit); }
  void cancel() const;  ///< also wakes the instance, as the agent does
  /// Waits until the call returns. Throws RuleBroken, with the call's name, if it does not return within kGrace after a
  /// cancel, its deadline or FINISH_SOON.
  CallTrace wait();

 private:
  std::string reason() const;
  std::shared_ptr<HostCall> call_;
  std::shared_ptr<Job> job_;
  std::function<void()> wake_;
  std::string name_;
};

}  // namespace driftd::check
