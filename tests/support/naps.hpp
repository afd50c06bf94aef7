// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace driftd::test {

/// The time in which this machine ran at all: naps of a tenth of a second that ended in time. What is promised each
/// second is held against that, for a machine that stands still for seconds keeps nobody's promises.
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
