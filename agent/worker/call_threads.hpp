// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace driftd::worker {

/// The threads for one sort of call. They are started when needed, up to `width`, and stay until join(). Jobs start in
/// order. A plugin's function may block for ever, and then the thread and join() do too: the agent kills a worker
/// process then. Member of a ProviderHost.
class CallThreads {
 public:
  explicit CallThreads(std::size_t width) : width_(width) {}
  ~CallThreads() { join(); }
  CallThreads(const CallThreads&) = delete;
  CallThreads& operator=(const CallThreads&) = delete;
  void post(std::function<void()> job);  ///< dropped after join(). [any thread]
  void join();                           ///< runs the queued jobs, then ends the threads; not from a job

 private:
  void work();  ///< what each thread does

  const std::size_t width_;  ///< maximum number of threads, and of jobs that run at once
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;
  std::size_t idle_ = 0;  ///< threads that wait for a job
  bool closed_ = false;   ///< join() was called
  std::vector<std::thread> threads_;
};

}  // namespace driftd::worker
