// SPDX-License-Identifier: Apache-2.0
// Group threads: which thread may do what, and the state of the whole process.
#include <fmt/format.h>
#include <poll.h>

#include <algorithm>

#include "check/process_rules.hpp"
#include "check/sink/groups.hpp"
#include "check/sink/stand.hpp"

namespace driftd::check::sink {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds kWhole{3000};

/// Delivers the batches at once, and probes. The calls meet in their first host functions. All must be delivered.
void deliver_at_once(Stand& stand, const SinkInstance& instance, const std::vector<Batch>& batches,
                     const std::string& when) {
  const auto meeting = std::make_shared<Rendezvous>(batches.size());
  CallFaults faults;
  faults.hook = [meeting](HostCall& call) {
    if (call.trace.callbacks <= 40) meeting->meet();
  };
  std::vector<RunningCall> running;
  for (const auto& batch : batches) running.push_back(instance.start_deliver(batch, faults));
  RunningCall probe = instance.start_probe();
  std::vector<CallTrace> traces;
  for (auto& call : running) traces.push_back(call.wait());
  (void)probe.wait();
  for (std::size_t i = 0; i < batches.size(); ++i) {
    if (!all_delivered(traces[i], batches[i].size())) {
      throw RuleBroken(
          fmt::format("{}: expected all delivered, found {}", when, describe_failure(traces[i], batches[i].size())));
    }
    stand.expect_arrived(batches[i], traces[i], when);
  }
}

void concurrent(const Subject& subject) {
  Stand stand(subject, "threads.concurrent");
  stand.expect_works_at_all();
  const auto instance = SinkInstance::open_plain(stand.subject());
  const auto calls = static_cast<std::size_t>(std::clamp(stand.plugin().info().concurrency, 1, 16));
  const std::string when =
      fmt::format("{} deliveries at once, as describe declares (guard what calls share, or declare fewer)", calls);
  const Batch plain = stand.events().full_batch(8);
  stand.expect_arrived(plain, instance->deliver(plain), "a plain batch");
  const std::size_t times = stand.receiver().count(number_of(plain.back()));  // how often one event names its id
  for (int round = 0; round < 8; ++round) {
    std::vector<Batch> batches;
    for (std::size_t i = 0; i < calls; ++i) batches.push_back(stand.events().batch(plain.size(), i * plain.size()));
    deliver_at_once(stand, *instance, batches, when);
    std::vector<std::size_t> all;
    for (const auto& batch : batches) {
      for (const auto& event : batch) all.push_back(number_of(event));
    }
    const long mixed = stand.receiver().await(all, kWhole, times);
    if (mixed < 0) continue;
    throw RuleBroken(fmt::format(
        "{}: event {}-{:06} arrived in part: its id did not come {} times, as that of an event that is sent alone; the "
        "rest of it is of another event",
        when, stand.events().prefix(), mixed, times));
  }
}

void instances(const Subject& subject) {
  Stand stand(subject, "threads.instances");
  stand.expect_works_at_all();
  const auto first = SinkInstance::open_plain(stand.subject());
  auto second = SinkInstance::open_plain(stand.subject());
  stand.expect_delivers(*first, "two instances (an instance keeps its state in what `out` points to), the first", 2);
  stand.expect_delivers(*second, "two instances, the second", 2);
  second->close();
  stand.expect_delivers(*first, "after another instance was closed (instances share nothing)", 2);
  const auto third = SinkInstance::open_plain(stand.subject());
  stand.expect_delivers(*first, "after another instance was opened", 2);
  stand.expect_delivers(*third, "an instance that was opened after another was closed", 2);
  const auto [trace, broken] = SinkInstance::open(stand.subject(), {"[]", {}});
  stand.expect_delivers(*first, "after an open that answered " + trace.why());
}

/// Makes every call, then waits a while for threads that were left behind.
void drive(Stand& stand) {
  constexpr int kLeftBehindMs = 500;
  exercise(stand);
  const auto instance = SinkInstance::open_plain(stand.subject());
  for (int i = 0; i < 3; ++i) (void)instance->deliver(stand.events().full_batch(8));
  (void)::poll(nullptr, 0, kLeftBehindMs);
  (void)instance->deliver(stand.events().full_batch(8));
  instance->close();
  (void)::poll(nullptr, 0, kLeftBehindMs);
}

void own_thread(const Subject& subject) {
  Stand stand(subject, "threads.own_thread");
  drive(stand);
  expect_own_thread();
}

void live_handles(const Subject& subject) {
  Stand stand(subject, "threads.live_handles");
  drive(stand);
  expect_live_handles();
}

void no_exception(const Subject& subject) {
  Stand stand(subject, "threads.no_exception");
  drive(stand);
  Host::get().expect_no_violation("threads.no_exception");
}

void process_state(const Subject& subject) {
  Stand stand(subject, "threads.process_state");
  (void)stand.plugin().info();  // the runtime of a language may finish its start in the first call
  expect_process_state([&](const AfterCall& after) { call_every_sink_function(stand, after); });
}

void stdio(const Subject& subject) {
  Stand stand(subject, "threads.stdio");
  expect_quiet_stdio([&](const AfterCall& after) { call_every_sink_function(stand, after); });
}

constexpr Check kThreadsChecks[] = {
    {"threads.concurrent", Level::must, "as many deliveries at once as declared, and a probe: all events arrive", 120s,
     &concurrent},
    {"threads.instances", Level::must, "instances share nothing: closing one leaves the other", 100s, &instances},
    {"threads.own_thread", Level::must, "host functions are called on the call's own thread only", 100s, &own_thread},
    {"threads.live_handles", Level::must, "no handle is used after its call returned: nothing is settled late", 100s,
     &live_handles},
    {"threads.process_state", Level::must,
     "calls leave signal mask and handlers, locale, working folder, umask, environment alone", 100s, &process_state},
    {"threads.stdio", Level::must, "descriptors 0 to 2 stay open and nothing is printed on stdout", 100s, &stdio},
    {"threads.no_exception", Level::must, "no exception crosses the border", 100s, &no_exception},
};

}  // namespace

std::span<const Check> threads_checks() { return kThreadsChecks; }

}  // namespace driftd::check::sink
