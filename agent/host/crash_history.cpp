// SPDX-License-Identifier: Apache-2.0
#include "host/crash_history.hpp"

#include <algorithm>

namespace driftd::host {
namespace {

constexpr auto kCrashWindow = std::chrono::minutes(10);
constexpr auto kGoodRun = std::chrono::seconds(60);  // a worker that ran this long resets the backoff

}  // namespace

CrashHistory::CrashHistory(const HostOptions& options)
    : parking_time_(options.parked),
      crashes_to_park_(static_cast<std::size_t>(options.crashes_to_park)),
      backoff_(options.restart_first, options.restart_max) {}

bool CrashHistory::add(Time now) {
  if (open_since_ != Time{} && now - open_since_ >= kGoodRun) backoff_.reset();
  open_since_ = {};
  crashes_.push_back(now);
  while (now - crashes_.front() > kCrashWindow) crashes_.pop_front();
  return crashes_.size() >= crashes_to_park_;
}

void CrashHistory::park(Nanos wall) { parked_until_ = wall + std::chrono::nanoseconds(parking_time_).count(); }

std::chrono::milliseconds CrashHistory::next_wait() { return parked_until_ != 0 ? parking_time_ : backoff_.next(); }

void CrashHistory::note_restart() {
  if (parked_until_ != 0) crashes_.clear();
  parked_until_ = 0;
  ++restarts_;
}

void CrashHistory::add_to(core::WorkerStatus& status, Time now) const {
  const auto recent = [now](Time at) { return now - at <= kCrashWindow; };
  status.crashes = static_cast<std::uint64_t>(std::count_if(crashes_.begin(), crashes_.end(), recent));
  status.restarts = restarts_;
  status.parked_until_ns = parked_until_;
}

}  // namespace driftd::host
