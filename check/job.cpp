// SPDX-License-Identifier: Apache-2.0
#include "check/job.hpp"

#include <utility>

namespace driftd::check {

/// A thread that runs one job after another until the process ends.
class PooledThread {
 public:
  static void run(std::shared_ptr<Job> job) {
    PooledThread* thread = nullptr;
    {
      const std::lock_guard lock(pool());
      if (!idle().empty()) thread = idle().back(), idle().pop_back();
    }
    if (thread == nullptr) thread = new PooledThread;  // never deleted: its thread may never return
    const std::lock_guard lock(thread->mutex_);
    thread->job_ = std::move(job);
    thread->changed_.notify_one();
  }

 private:
  PooledThread() {
    std::thread([this] { work(); }).detach();
  }

  [[noreturn]] void work() {
    for (;;) {
      std::shared_ptr<Job> job;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return job_ != nullptr; });
        job = std::exchange(job_, nullptr);
      }
      job->function_();
      job->function_ = nullptr;  // releases what it holds before the job counts as done
      {
        const std::lock_guard lock(pool());
        idle().push_back(this);
      }
      const std::lock_guard lock(job->mutex_);
      job->done_ = true;
      job->changed_.notify_all();
    }
  }

  static std::mutex& pool() {
    static auto* mutex = new std::mutex;
    return *mutex;
  }
  static std::vector<PooledThread*>& idle() {
    static auto* threads = new std::vector<PooledThread*>;
    return *threads;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::shared_ptr<Job> job_;
};

std::shared_ptr<Job> Job::start(std::function<void()> function) {
  auto job = std::make_shared<Job>();
  job->function_ = std::move(function);
  PooledThread::run(job);
  return job;
}

bool Job::wait(std::chrono::milliseconds time_limit) {
  constexpr std::chrono::milliseconds kSlice{10};
  std::unique_lock lock(mutex_);
  for (std::chrono::milliseconds waited{0}; waited < time_limit; waited += kSlice) {
    if (changed_.wait_for(lock, kSlice, [this] { return done_.load(); })) return true;
  }
  return done_;
}

void Gate::pass() {
  std::unique_lock lock(mutex_);
  reached_ = true;
  changed_.notify_all();
  changed_.wait(lock, [this] { return open_; });
}

bool Gate::reached(std::chrono::milliseconds time_limit) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, time_limit, [this] { return reached_; });
}

void Gate::open() {
  const std::lock_guard lock(mutex_);
  open_ = true;
  changed_.notify_all();
}

}  // namespace driftd::check
