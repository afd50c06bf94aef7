// SPDX-License-Identifier: Apache-2.0
#include "controller/clock.hpp"

namespace driftd::controller {

Time SystemClock::now() const { return std::chrono::steady_clock::now(); }

std::chrono::system_clock::time_point SystemClock::wall() const { return std::chrono::system_clock::now(); }

void SystemClock::wait_until(std::unique_lock<std::mutex>& lock, std::condition_variable& changed, Time until) const {
  if (until == Time::max()) {
    changed.wait(lock);
  } else {
    changed.wait_until(lock, until);
  }
}

}  // namespace driftd::controller
