// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace driftd::test {

/// Measures how long this machine really ran: a thread waits again and again for a tenth of a second, and counts each
/// wait that ended in time. A test that expects something in each second compares with this, because a machine that
/// stands still for seconds does nothing in them.
class Naps {
 public:
  Naps() : thread_([this] { nap(); }) {}
  ~Naps() {
    {
      const std::lock_guard lock(mutex_);
      awake_ = true;
    }
    wake_.notify_one();
    thread_.join();
  }
  Naps(const Naps&) = delete;
  Naps& operator=(const Naps&) = delete;

  /// Returns for how many seconds the machine ran since the construction.
  long seconds() const { return count_ / 10; }

 private:
  using Clock = std::chrono::steady_clock;

  void nap() {
    std::unique_lock lock(mutex_);
    while (!awake_) {
      const auto due = Clock::now() + std::chrono::milliseconds(100);
      wake_.wait_until(lock, due, [this] { return awake_; });
      if (Clock::now() < due + std::chrono::milliseconds(100)) ++count_;
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  bool awake_ = false;
  std::atomic<long> count_{0};
  std::thread thread_;
};

}  // namespace driftd::test
