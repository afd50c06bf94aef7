// SPDX-License-Identifier: Apache-2.0
// Group chaos, part 2: checks that need child processes of their own.
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <csignal>

#include "check/group_chaos.hpp"
#include "check/own_jail.hpp"
#include "check/progress.hpp"
#include "check/runner.hpp"
#include "check/shared_listing.hpp"

namespace driftd::check {
namespace {

using std::chrono::seconds;

/// Lists in a child process and stores the listing. Returns how many host functions were called.
std::uint64_t list_in_child(const Subject& subject, SharedListing& shared) {
  return std::stoull(text_or_rethrow(run_in_child(seconds(100), [&] {
    const Instance instance(subject);
    const CallTrace trace = list(instance);
    shared.write(listing_of(trace));
    return std::to_string(trace.callbacks);
  })));
}

/// Opens and lists in a child process that is killed at the k-th host function, or after `wait_ms` if k is 0.
void kill_while_listing(const Subject& subject, std::uint64_t k, int wait_ms) {
  (void)run_in_child(seconds(100), [&] {
    const auto at = std::make_shared<std::atomic<std::uint64_t>>(0);
    CallFaults faults;
    faults.hook = [at, k](HostCall&) {
      if (++*at == k) ::raise(SIGKILL);
    };
    if (k == 0) {
      std::thread([wait_ms] {
        (void)::poll(nullptr, 0, wait_ms);
        ::raise(SIGKILL);
      }).detach();
    }
    auto [trace, instance] = Instance::open(subject, subject.settings_json, subject.secrets, faults);
    while (instance != nullptr && trace.threw == false) (void)instance->refresh({}, faults);
    return std::string();
  });
}

/// Throws CheckNotMade if undisturbed processes list something different each time.
void expect_steady_system(const Subject& subject) {
  const std::string found = text_or_rethrow(run_in_child(seconds(100), [&] { return difference_over_time(subject); }));
  if (!found.empty()) {
    throw CheckNotMade(fmt::format("the system changes while it is looked at ({}): check a quiet one", found));
  }
}

/// Lists in a new process after a kill and describes the first difference. Empty if there is none.
std::string difference_after_kill(const Subject& subject, SharedListing& shared) {
  const Outcome outcome = run_in_child(seconds(100), [&] {
    auto [trace, instance] = Instance::open(subject, subject.settings_json, subject.secrets);
    if (instance == nullptr) throw RuleBroken("a new process cannot open an instance any more: " + trace.why());
    const CallTrace listed = instance->refresh();
    if (listed.status != DRIFTD_OK) throw RuleBroken("a new process cannot list any more: " + listed.why());
    return difference(instance->provider(), shared.read(), listing_of(listed));
  });
  if (outcome.ending == Ending::broken) {
    throw RuleBroken(fmt::format(
        "after a SIGKILL in the middle of a call: {}; keep no state that a dead process leaves locked", outcome.text));
  }
  return text_or_rethrow(outcome);
}

std::string settings_schema_in_child(const Subject& subject) {
  return text_or_rethrow(run_in_child(seconds(20), [&] { return Provider::load(subject).loaded().settings_schema; }));
}

}  // namespace

void kill_and_list(const Subject& subject) {
  constexpr int kKills = 10;
  auto random = random_of(subject, "chaos.kill");
  SharedListing shared;
  const std::uint64_t functions = list_in_child(subject, shared);
  int differed = 0;
  for (int i = 0; i < kKills; ++i) {
    const std::uint64_t k = i % 2 == 0 ? 1 + below(random, functions) : 0;
    kill_while_listing(subject, k, static_cast<int>(below(random, 60)));
    const std::string found = difference_after_kill(subject, shared);
    if (found.empty()) continue;
    expect_steady_system(subject);
    if (++differed > kKills / 2) throw RuleBroken("after kills a new process lists something else: " + found);
    (void)list_in_child(subject, shared);  // the system itself may have changed, but not after most kills
  }
}

void inside_jail(const Subject& subject) {
  expect_jail();
  SharedListing shared;
  (void)list_in_child(subject, shared);
  const std::string found = text_or_rethrow(run_in_child(seconds(100), [&] {
    enter_jail(subject, settings_schema_in_child(subject), subject.settings_json);
    auto [trace, instance] = Instance::open(subject, subject.settings_json, subject.secrets);
    if (instance == nullptr) throw RuleBroken("open answered inside the worker's jail: " + trace.why());
    const CallTrace listed = instance->refresh();
    if (listed.status != DRIFTD_OK)
      throw RuleBroken("refresh answered inside the worker's jail: " + listed.why() + kNoEscape);
    (void)instance->health();
    return difference(instance->provider(), shared.read(), listing_of(listed));
  }));
  if (found.empty()) return;
  expect_steady_system(subject);
  throw RuleBroken("inside the worker's jail it lists something else: " + found + kNoEscape);
}

}  // namespace driftd::check
