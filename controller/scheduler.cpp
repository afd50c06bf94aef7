// SPDX-License-Identifier: Apache-2.0
#include "controller/scheduler.hpp"

#include <algorithm>
#include <exception>
#include <utility>

namespace driftd::controller {
namespace {

/// An exception is a failure as any other.
Status attempt(const std::function<Status(std::stop_token)>& work, const std::stop_token& stop) {
  try {
    return work(stop);
  } catch (const std::exception& thrown) {
    return tl::unexpected(std::string("it threw: ") + thrown.what());
  } catch (...) {
    return tl::unexpected(std::string("it threw an exception of an unknown type"));
  }
}

}  // namespace

Scheduler::Scheduler(const Settings& settings, const Clock& clock, Jobs jobs, Log log)
    : interval_(settings.scheduler_interval),
      clock_(clock),
      jobs_(std::move(jobs)),
      log_(std::move(log)) {
  if (jobs_.resync) {
    add(
        "resync", interval_, [this](const std::stop_token&) { return resync(); }, &SchedulerMetrics::cycles);
  }
  if (jobs_.cleanup) add("cleanup", settings.cleanup_interval, jobs_.cleanup, &SchedulerMetrics::cleanups);
  if (jobs_.poll) {
    add("poll", settings.watch_interval, jobs_.poll, &SchedulerMetrics::polls);
    scheduled_.back().due = clock_.now();
  }
}

Scheduler::~Scheduler() { stop(); }

void Scheduler::add(std::string name, Duration interval, std::function<Status(std::stop_token)> work,
                    std::uint64_t SchedulerMetrics::*count) {
  scheduled_.push_back({std::move(name), interval, std::move(work), count, clock_.now() + interval, {}});
}

void Scheduler::start() {
  {
    const std::lock_guard lock(mutex_);
    metrics_.running = true;
    stop_ = std::stop_source();
  }
  for (Job& job : scheduled_) threads_.emplace_back([this, &job] { follow(job); });
}

void Scheduler::stop() {
  {
    const std::lock_guard lock(mutex_);
    metrics_.running = false;
  }
  stop_.request_stop();
  {
    const std::lock_guard lock(mutex_);  // a thread that looked at the token before now waits, and is woken
    stopped_.notify_all();
  }
  for (auto& thread : threads_) thread.join();
  threads_.clear();
}

void Scheduler::follow(Job& job) {
  while (true) {
    {
      std::unique_lock lock(mutex_);
      if (stop_.stop_requested()) return;
      if (job.due > clock_.now()) {
        clock_.wait_until(lock, stopped_, job.due);
        continue;
      }
    }
    run(job);
  }
}

void Scheduler::run(Job& job) {
  {
    const std::lock_guard lock(mutex_);
    job.since = clock_.now();
  }
  const Status done = attempt(job.work, stop_.get_token());
  {
    const std::lock_guard lock(mutex_);
    job.due = std::max(*job.since + job.interval, clock_.now());
    job.since.reset();
    ++(metrics_.*job.count);
    if (!done) {
      ++metrics_.failures;
      metrics_.last_error = job.name + ": " + done.error();
    }
  }
  if (!done) log_(LogLevel::error, job.name + " failed: " + done.error() + "; it is done again the next time");
}

Status Scheduler::resync() {
  const std::size_t count = jobs_.resync();
  {
    const std::lock_guard lock(mutex_);
    metrics_.processed_this_cycle = count;
  }
  if (!jobs_.count_by_phase) return {};
  auto phases = jobs_.count_by_phase();
  const std::lock_guard lock(mutex_);
  metrics_.instances_by_phase = std::move(phases);
  return {};
}

void Scheduler::run_due() {
  for (Job& job : scheduled_) {
    if (job.due <= clock_.now()) run(job);
  }
}

Time Scheduler::next_due() const {
  const std::lock_guard lock(mutex_);
  Time out = Time::max();
  for (const Job& job : scheduled_) out = std::min(out, job.due);
  return out;
}

SchedulerMetrics Scheduler::metrics() const {
  const std::lock_guard lock(mutex_);
  SchedulerMetrics out = metrics_;
  out.scheduler_interval = interval_;
  for (const Job& job : scheduled_) {
    if (job.since) out.longest_running = std::max(out.longest_running, Duration(clock_.now() - *job.since));
  }
  return out;
}

}  // namespace driftd::controller
