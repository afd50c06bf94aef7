// SPDX-License-Identifier: Apache-2.0
// What a plugin of any kind may not do to its process and with the host's functions.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>

#include "check/check.hpp"

namespace driftd::check {

/// Runs after each call of a script, with the name of the call.
using AfterCall = std::function<void(const std::string& call)>;

// All of these throw RuleBroken. `drive` makes every call of a plugin's table on the current thread.

/// Signal handlers and mask, locale, working folder, umask and environment are the same after each call.
void expect_process_state(const std::function<void(const AfterCall&)>& drive);
/// Descriptors 0 to 2 stay as they are, and nothing is printed on stdout.
void expect_quiet_stdio(const std::function<void(const AfterCall&)>& drive);
void expect_own_thread();    ///< the host saw no function called on another thread than the call's own
void expect_live_handles();  ///< the host saw no handle of a call that is over

/// Calls wait here for each other inside a host function, so that they overlap. The wait is short. [any thread]
class Rendezvous {
 public:
  explicit Rendezvous(std::size_t all) : all_(all) {}
  void meet();

 private:
  void next();
  const std::size_t all_;
  std::size_t here_ = 0, round_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
};

}  // namespace driftd::check
