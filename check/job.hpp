// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace driftd::check {

/// A function that runs on a thread of a pool. Time limits are counted in short slices of waiting, so that a busy
/// machine does not make a provider look late. A thread that never returns is left behind: the process ends by _exit.
class Job {
 public:
  static std::shared_ptr<Job> start(std::function<void()> function);
  bool done() const { return done_; }
  bool wait(std::chrono::milliseconds time_limit);  ///< true if the function has returned

 private:
  friend class PooledThread;
  std::function<void()> function_;
  std::atomic<bool> done_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
};

/// Blocks every thread in pass() until open() is called. [any thread]
class Gate {
 public:
  void pass();                                         ///< blocks until open() was called
  bool reached(std::chrono::milliseconds time_limit);  ///< waits until a thread has called pass(); false on timeout
  void open();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false, reached_ = false;
};

}  // namespace driftd::check
