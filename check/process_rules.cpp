// SPDX-License-Identifier: Apache-2.0
#include "check/process_rules.hpp"

#include <fmt/format.h>

#include "check/host.hpp"
#include "check/process_state.hpp"

namespace driftd::check {
namespace {

/// Throws RuleBroken, with the advice `mend`, if a rule of the host's table was violated.
void expect_no_violation(const char* rule, const char* mend) {
  try {
    Host::get().expect_no_violation(rule);
  } catch (const RuleBroken& e) {
    throw RuleBroken(fmt::format("{}; {}", e.what(), mend));
  }
}

}  // namespace

void Rendezvous::meet() {
  std::unique_lock lock(mutex_);
  const std::size_t round = round_;
  if (++here_ == all_) return next();
  if (!changed_.wait_for(lock, std::chrono::milliseconds(20), [&] { return round_ != round; }) && round_ == round)
    next();
}

void Rendezvous::next() {
  here_ = 0;
  ++round_;
  changed_.notify_all();
}

void expect_own_thread() {
  expect_no_violation("threads.own_thread",
                      "expected host functions to be called on the call's own thread: let other threads queue what "
                      "they have to say (the SDK's log queue) for the thread that runs the call");
}

void expect_live_handles() {
  expect_no_violation("threads.live_handles",
                      "expected the handle that the running call was given: never keep one behind its return");
}

void expect_process_state(const std::function<void(const AfterCall&)>& drive) {
  const auto before = ProcessState::capture();
  drive([&](const std::string& call) {
    const auto now = ProcessState::capture();
    const std::string differs = before.difference(now), signals = before.signal_difference(now);
    if (differs.empty() && signals.empty()) return;
    throw RuleBroken(fmt::format(
        "after {}: {}; these belong to the whole process and to the host: use what works without them (uselocale, "
        "openat, a child's own environment)",
        call, differs.empty() ? signals : differs));
  });
}

void expect_quiet_stdio(const std::function<void(const AfterCall&)>& drive) {
  std::string redirected, printed, at;
  {
    const Stdio watched(false);
    drive([&](const std::string& call) {
      if (!redirected.empty() || !printed.empty()) return;
      redirected = watched.redirected();
      printed = watched.printed();
      at = call;
    });
  }
  if (!redirected.empty())
    throw RuleBroken(fmt::format("after {}: expected descriptors 0 to 2 as they were, found: {}", at, redirected));
  if (printed.empty()) return;
  throw RuleBroken(fmt::format(
      "{} printed: expected nothing on stdout, found \"{}\"; it may be a pipe that somebody parses: use the host's log",
      at, printed));
}

}  // namespace driftd::check
