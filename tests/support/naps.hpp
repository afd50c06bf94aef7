// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace driftd::test {

/// Measures how long this machine really ran, by naps of a tenth of a second that ended in time. A promise for each
/// second is compared with that, because a machine that stands still for seconds cannot keep it.
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
