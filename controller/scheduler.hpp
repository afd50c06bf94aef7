// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include "controller/clock.hpp"
#include "controller/metrics.hpp"
#include "controller/settings.hpp"

namespace driftd::controller {

/// What a scheduler does. Each may be empty. What throws or fails is counted, logged, and done again the next time.
struct Jobs {
  /// Every `scheduler_interval`: hands all known keys to the controllers, and returns how many.
  std::function<std::size_t()> resync;
  /// After each resync: how many resources are in each phase.
  std::function<std::map<std::string, std::size_t>()> count_by_phase;
  /// Every `cleanup_interval`.
  std::function<Status(std::stop_token)> cleanup;
  /// At once and every `watch_interval`, for a source that has no watch: lists, and lets a watcher observe it.
  std::function<Status(std::stop_token)> poll;
};

/// Runs the jobs of a controller, each on a thread of its own, so that one that hangs holds up none of the others.
/// Times are from start to start; a job that takes longer begins again when it ends, once. A test calls run_due()
/// instead of start(). Any thread, except start() and stop().
class Scheduler {
 public:
  Scheduler(const Settings& settings, const Clock& clock, Jobs jobs, Log log);
  ~Scheduler();  ///< calls stop()
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  void start();
  void stop();  ///< asks running jobs to stop, and waits for them

  void run_due();
  Time next_due() const;  ///< Time::max() if there is no job
  SchedulerMetrics metrics() const;

 private:
  struct Job {
    std::string name;
    Duration interval{};
    std::function<Status(std::stop_token)> work;
    std::uint64_t SchedulerMetrics::*count = nullptr;
    Time due{};
    std::optional<Time> since;  ///< of the run that has not ended
  };

  void add(std::string name, Duration interval, std::function<Status(std::stop_token)> work,
           std::uint64_t SchedulerMetrics::*count);
  Status resync();
  void run(Job& job);
  void follow(Job& job);

  const Duration interval_;
  const Clock& clock_;
  const Jobs jobs_;
  const Log log_;
  mutable std::mutex mutex_;
  std::condition_variable stopped_;
  std::list<Job> scheduled_;
  SchedulerMetrics metrics_;
  std::stop_source stop_;
  std::vector<std::thread> threads_;
};

}  // namespace driftd::controller
