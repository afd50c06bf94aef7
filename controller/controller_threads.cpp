// SPDX-License-Identifier: Apache-2.0
// The threads of a controller, and what it shows of itself.
#include <algorithm>
#include <iterator>
#include <system_error>

#include "controller/controller.hpp"

namespace driftd::controller {
namespace {

constexpr std::size_t kMaxReplacements = 64;

}  // namespace

void Controller::start() {
  const std::lock_guard lock(mutex_);
  stopping_ = false;
  for (int i = 0; i < settings_.workers; ++i) hire();
  deadlines_ = std::thread([this] { watch_deadlines(); });
}

void Controller::stop() {
  std::vector<std::stop_source> sources;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    for (const auto& [key, call] : calls_) sources.push_back(call.stop);
    due_changed_.notify_all();
    deadline_changed_.notify_all();
  }
  for (auto& source : sources) source.request_stop();
  if (deadlines_.joinable()) deadlines_.join();  // first, because it makes workers
  for (Worker& worker : workers_) worker.thread.join();
  workers_.clear();
}

void Controller::hire() {
  Worker& worker = workers_.emplace_back();
  try {
    worker.thread = std::thread([this, &worker] { work(worker); });
  } catch (...) {
    workers_.pop_back();
    throw;
  }
}

void Controller::work(Worker& worker) {
  while (true) {
    auto attempt = take();
    if (attempt) {
      const AttemptResult result = run(*attempt);
      if (!finish(*attempt, result)) continue;
      const std::lock_guard lock(mutex_);
      worker.has_ended = true;
      deadline_changed_.notify_all();
      return;
    }
    std::unique_lock lock(mutex_);
    if (stopping_) return;
    // Looked up under the mutex: what was added since take() is seen here, and what is added later notifies.
    if (queue_.next_due() > clock_.now()) clock_.wait_until(lock, due_changed_, queue_.next_due());
  }
}

void Controller::watch_deadlines() {
  while (true) {
    expire();
    std::unique_lock lock(mutex_);
    if (stopping_) return;
    replace_overdue_workers();
    // Looked up under the mutex: a call that began since expire() is seen here, and a later one notifies.
    if (first_deadline() > clock_.now()) clock_.wait_until(lock, deadline_changed_, first_deadline());
  }
}

/// A call that does not return must not hold up all other keys: it has the key, not the worker.
void Controller::replace_overdue_workers() {
  for (auto worker = workers_.begin(); worker != workers_.end();) {
    const bool has_ended = worker->has_ended;
    if (has_ended) worker->thread.join();
    worker = has_ended ? workers_.erase(worker) : std::next(worker);
  }
  const std::size_t max = static_cast<std::size_t>(settings_.workers) + kMaxReplacements;
  for (auto& [key, call] : calls_) {
    if (!call.overdue || call.replaced || workers_.size() >= max) continue;
    try {
      hire();
      call.replaced = true;
    } catch (const std::system_error& error) {
      log_(LogLevel::error, "controller " + name_ + ": no thread in place of the one that reconciles " + render(key) +
                                ": " + error.what());
      return;
    }
  }
}

Time Controller::next_due() const {
  const std::lock_guard lock(mutex_);
  return queue_.next_due();
}

Time Controller::next_deadline() const {
  const std::lock_guard lock(mutex_);
  return first_deadline();
}

Time Controller::first_deadline() const {
  Time out = Time::max();
  for (const auto& [key, call] : calls_) {
    if (!call.overdue) out = std::min(out, call.deadline);
  }
  return out;
}

std::vector<FailedKey> Controller::failed() const {
  const std::lock_guard lock(mutex_);
  return queue_.failed();
}

std::vector<RunningCall> Controller::running() const {
  const std::lock_guard lock(mutex_);
  const Time now = clock_.now();
  std::vector<RunningCall> out;
  for (const auto& [key, call] : calls_) out.push_back({key, call.finalizes, call.overdue, now - call.since});
  return out;
}

std::size_t Controller::known() const {
  const std::lock_guard lock(mutex_);
  return std::max(queue_.known(), endings_.size());
}

ControllerMetrics Controller::metrics() const {
  const std::lock_guard lock(mutex_);
  const Time now = clock_.now();
  ControllerMetrics out = metrics_;
  if (ended_calls_ > 0) out.average_reconciliation_duration = total_duration_ / ended_calls_;
  out.pending_reconciliations = queue_.pending(now);
  out.scheduled = queue_.size() - out.pending_reconciliations;
  out.failed_keys = queue_.failed_count();
  out.running = calls_.size();
  out.oldest_waiting = queue_.oldest_waiting(now);
  for (const auto& [key, call] : calls_) {
    out.overdue += call.overdue ? 1 : 0;
    out.longest_running = std::max(out.longest_running, Duration(now - call.since));
  }
  return out;
}

}  // namespace driftd::controller
