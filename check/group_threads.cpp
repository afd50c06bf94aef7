// SPDX-License-Identifier: Apache-2.0
// Group threads: which thread may do what, and the state of the whole process.
#include <fmt/format.h>
#include <poll.h>

#include <algorithm>

#include "check/process_rules.hpp"
#include "check/raw_instance.hpp"

namespace driftd::check {
namespace {

using namespace std::chrono_literals;

Listing plain(const Instance& instance) {
  Listing out = listing_of(list(instance));
  const std::string differs = difference(instance.provider(), out, listing_of(list(instance)));
  if (!differs.empty())
    throw CheckNotMade(fmt::format("two plain refreshes differ: {}; see refresh.same_twice", differs));
  return out;
}

/// Refreshes all of `instances` at once. The calls meet in their first host functions.
void expect_same_at_once(const std::vector<const Instance*>& instances, const Listing& expected,
                         const std::string& when) {
  const auto meeting = std::make_shared<Rendezvous>(instances.size());
  CallFaults faults;
  faults.hook = [meeting](HostCall& call) {
    if (call.trace.callbacks <= 40) meeting->meet();
  };
  std::vector<RunningCall> running;
  for (const auto* instance : instances) running.push_back(instance->start(Function::refresh, CallArguments{}, faults));
  std::vector<CallTrace> trace;
  for (auto& one : running) trace.push_back(one.wait());
  for (const auto& one : trace) expect_same(instances.front()->provider(), expected, one, when);
}

void concurrent(const Subject& subject) {
  const Instance instance(subject);
  const int declared = instance.provider().info().concurrency;
  const Listing expected = plain(instance);
  const std::vector<const Instance*> all(static_cast<std::size_t>(std::clamp(declared, 1, 16)), &instance);
  const std::string when =
      fmt::format("{} refreshes at once, as describe declares (guard what calls share, or declare fewer)", all.size());
  for (int round = 0; round < 5; ++round) {
    const RunningCall health = instance.start(Function::health, CallArguments{});
    expect_same_at_once(all, expected, when);
    (void)RunningCall(health).wait();
  }
}

void instances(const Subject& subject) {
  const Instance first(subject);
  const Listing expected = plain(first);
  auto second = std::make_unique<Instance>(subject);
  expect_same_at_once({&first, second.get()}, expected,
                      "two instances at once (an instance keeps its state in what `out` points to)");
  second->close();
  expect_same(first.provider(), expected, first.refresh(),
              "after another instance was closed (instances share nothing)");
  const Instance third(subject);
  expect_same(first.provider(), expected, first.refresh(), "after another instance was opened");
  expect_same(first.provider(), expected, third.refresh(), "on an instance that was opened after another was closed");
  const auto [trace, broken] = Instance::open(subject, "[]", {});
  expect_same(first.provider(), expected, first.refresh(), "after an open that answered " + trace.why());
}

/// Makes every call once, then waits a while for threads that were left behind.
void drive(const Subject& subject) {
  constexpr int kLeftBehindMs = 500;
  RawInstance instance(subject, {});
  call_every_function(instance, [](const std::string&) {});
  instance.open();
  for (int i = 0; i < 3; ++i) {
    (void)instance.refresh();
    (void)instance.health();
  }
  (void)::poll(nullptr, 0, kLeftBehindMs);
  instance.close();
  (void)::poll(nullptr, 0, kLeftBehindMs);
}

void own_thread(const Subject& subject) {
  drive(subject);
  expect_own_thread();
}

void live_handles(const Subject& subject) {
  drive(subject);
  expect_live_handles();
}

void no_exception(const Subject& subject) {
  drive(subject);
  Host::get().expect_no_violation("threads.no_exception");
}

void process_state(const Subject& subject) {
  RawInstance instance(subject, {});
  (void)instance.provider().info();  // the runtime of a language may finish its start in the first call
  expect_process_state([&](const AfterCall& after) { call_every_function(instance, after); });
}

void stdio(const Subject& subject) {
  RawInstance instance(subject, {});
  expect_quiet_stdio([&](const AfterCall& after) { call_every_function(instance, after); });
}

constexpr Check kThreadsChecks[] = {
    {"threads.concurrent", Level::must, "as many calls at once as declared give what one gives", 120s, &concurrent},
    {"threads.instances", Level::must, "instances share nothing: closing one leaves the other", 100s, &instances},
    {"threads.own_thread", Level::must, "host functions are called on the call's own thread only", 100s, &own_thread},
    {"threads.live_handles", Level::must, "no handle is used after its call returned, none is made up", 100s,
     &live_handles},
    {"threads.process_state", Level::must,
     "calls leave signal mask and handlers, locale, working folder, umask, environment alone", 100s, &process_state},
    {"threads.stdio", Level::must, "descriptors 0 to 2 stay open and nothing is printed on stdout", 100s, &stdio},
    {"threads.no_exception", Level::must, "no exception crosses the border", 100s, &no_exception},
};

}  // namespace

std::span<const Check> threads_checks() { return kThreadsChecks; }

}  // namespace driftd::check
