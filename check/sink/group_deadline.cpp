// SPDX-License-Identifier: Apache-2.0
// Group deadline: a call returns in time after a cancel or its deadline.
#include <fmt/format.h>

#include <algorithm>

#include "check/progress.hpp"
#include "check/random.hpp"
#include "check/sink/groups.hpp"
#include "check/sink/stand.hpp"

namespace driftd::check::sink {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Steady = std::chrono::steady_clock;

/// Calls deliver, probe and flush with these faults: each must return in time. Then the sink must deliver again.
void ask_all(Stand& stand, const CallFaults& faults, const std::string& after) {
  stand.expect_works_at_all();
  const auto instance = SinkInstance::open_plain(stand.subject());
  for (int i = 0; i < 3; ++i) {
    const Batch batch = stand.events().full_batch(16);
    stand.expect_arrived(batch, instance->deliver(batch, faults), after);
    (void)instance->probe(faults);
    if (instance->has_flush()) (void)instance->flush(faults);
  }
  stand.expect_delivers(*instance, "after " + after);
}

void past(const Subject& subject) {
  Stand stand(subject, "deadline.past");
  CallFaults late;
  late.time = milliseconds(-1000);
  ask_all(stand, late, "a deliver with a deadline that had passed");
}

void cancel_before(const Subject& subject) {
  Stand stand(subject, "deadline.cancel_before");
  CallFaults cancelled;
  cancelled.cancel_at = 0;
  ask_all(stand, cancelled, "a deliver that was cancelled before its start");
}

void cancel_sweep(const Subject& subject) {
  Stand stand(subject, "deadline.cancel_sweep");
  stand.expect_works_at_all();
  auto random = random_of(subject, "deadline.cancel_sweep");
  const auto instance = SinkInstance::open_plain(stand.subject());
  const CallTrace recorded = instance->deliver(stand.events().full_batch(16));
  const auto until = Steady::now() + seconds(40);
  auto points = spread(random, recorded.callbacks, 100);
  if (points.size() > 8) std::shuffle(points.begin() + 4, points.end() - 4, random);
  for (const auto k : points) {
    if (Steady::now() > until) break;
    CallFaults faults;
    faults.cancel_at = k;
    const auto* function = k <= recorded.functions.size() ? recorded.functions[k - 1] : "a host function";
    const std::string when = fmt::format("cancelled at host function {} of {} ({})", k, recorded.callbacks, function);
    const Batch batch = stand.events().full_batch(16);
    stand.expect_arrived(batch, instance->deliver(batch, faults), when);
    stand.expect_delivers(*instance, "after a deliver that was " + when);
  }
}

void wake_often(const SinkInstance& instance, const char* when) {
  constexpr int kThreads = 4, kTimes = 250;
  std::vector<std::shared_ptr<Job>> jobs;
  for (int i = 0; i < kThreads; ++i) {
    jobs.push_back(Job::start([&instance] {
      for (int n = 0; n < kTimes; ++n) instance.wake();
    }));
  }
  for (const auto& job : jobs) {
    if (job->wait(milliseconds(1000))) continue;
    throw RuleBroken(fmt::format(
        "{} calls of wake did not return within a second {}; wake takes no lock that a call holds and does no I/O",
        kThreads * kTimes, when));
  }
}

void wake(const Subject& subject) {
  static Stand* stand = nullptr;  // both must outlive threads that never return
  static const SinkInstance* instance = nullptr;
  stand = new Stand(subject, "deadline.wake");
  stand->expect_works_at_all();
  instance = SinkInstance::open_plain(stand->subject()).release();
  wake_often(*instance, "while no call is in progress");
  const auto gate = std::make_shared<Gate>();
  CallFaults held;
  held.hook = [gate](HostCall&) { gate->pass(); };
  const Batch batch = stand->events().full_batch(8);
  RunningCall deliver = instance->start_deliver(batch, held);
  while (!deliver.returned() && !gate->reached(milliseconds(20))) continue;
  wake_often(*instance, "while a deliver is in the middle of a host function");
  gate->open();
  const CallTrace trace = deliver.wait();
  if (!all_delivered(trace, batch.size())) {
    throw RuleBroken(fmt::format(
        "a deliver that was woken but not cancelled: expected all delivered, found {}; wake is a nudge to look at "
        "cancelled(), no cancel",
        describe_failure(trace, batch.size())));
  }
  stand->expect_delivers(*instance, "after a thousand wakes");
}

void fall_into(Stand& stand, BlackHole::Kind kind) {
  const BlackHole hole = stand.black_hole(kind);
  const auto instance = SinkInstance::open_plain(stand.pointed_at(hole));
  const std::string large(8u << 20, 'x');  // more than the buffers of two sockets hold, so that sending blocks as well
  RunningCall deliver = instance->start_deliver({stand.events().next(0, large)});
  (void)deliver.returned_within(milliseconds(300));
  deliver.cancel();
  (void)deliver.wait();
  CallFaults brief;
  brief.time = milliseconds(200);
  (void)instance->deliver(stand.events().batch(1), brief);
  (void)instance->deliver({stand.events().next(0, large)}, brief);
  instance->close();
}

void black_hole(const Subject& subject) {
  Stand stand(subject, "deadline.black_hole");
  fall_into(stand, BlackHole::Kind::deaf);
  fall_into(stand, BlackHole::Kind::full);
}

void close(const Subject& subject) {
  Stand stand(subject, "deadline.close");
  SinkInstance::open_plain(stand.subject())->close();
  const auto used = SinkInstance::open_plain(stand.subject());
  (void)used->deliver(stand.events().full_batch(8));
  CallFaults cancelled;
  cancelled.cancel_at = 1;
  (void)used->deliver(stand.events().full_batch(8), cancelled);
  used->close();
}

constexpr Check kDeadlineChecks[] = {
    {"deadline.past", Level::must,
     "a deadline that passed already: back within the grace time, and the next call works", seconds(100), &past},
    {"deadline.cancel_before", Level::must, "cancelled before the start: back within the grace time", seconds(100),
     &cancel_before},
    {"deadline.cancel_sweep", Level::must,
     "cancelled at each host callback in turn: back within the grace time, and the next call works", seconds(150),
     &cancel_sweep},
    {"deadline.wake", Level::must, "wake returns at once, from any thread, a thousand times, in and out of calls",
     seconds(100), &wake},
    {"deadline.black_hole", Level::must,
     "blocked on a peer that never answers: back within the grace time of cancel and wake", seconds(100), &black_hole},
    {"deadline.close", Level::must, "close returns within the grace time", seconds(100), &close},
};

}  // namespace

std::span<const Check> deadline_checks() { return kDeadlineChecks; }

}  // namespace driftd::check::sink
