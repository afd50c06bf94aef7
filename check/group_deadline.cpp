// SPDX-License-Identifier: Apache-2.0
// Group deadline: a call returns in time after a cancel or its deadline.
#include <fmt/format.h>

#include <algorithm>

#include "check/address.hpp"
#include "check/listing.hpp"
#include "check/progress.hpp"

namespace driftd::check {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Steady = std::chrono::steady_clock;

constexpr milliseconds kHealthLimit{1000}, kHealthSlack{300};  // the slack is for a busy machine, not for the provider

/// Lists the system. Empty if that fails: the checks of this group also run on a system that is down.
std::optional<Listing> try_list(const Instance& instance) {
  const CallTrace trace = instance.refresh();
  if (trace.status != DRIFTD_OK || trace.unchanged) return std::nullopt;
  return listing_of(trace);
}

std::vector<Identity> first_of(const std::optional<Listing>& listing, std::size_t count) {
  std::vector<Identity> out;
  for (const auto& [identity, record] : listing.value_or(Listing{})) {
    if (out.size() < count) out.push_back(identity);
  }
  return out;
}

/// Calls refresh, read and health with these faults. Each must return in time, and none may claim to be complete if it
/// is not.
void ask_all(const Instance& instance, const std::optional<Listing>& whole, const CallFaults& faults,
             const char* when) {
  const CallTrace trace = instance.refresh({}, faults);
  if (whole) expect_true_completes(instance, *whole, trace, when);
  if (const auto ids = first_of(whole, 5); !ids.empty()) (void)instance.read(ids, faults);
  (void)instance.health(faults);
}

void expect_works_again(const Instance& instance, const std::optional<Listing>& whole, const std::string& after) {
  if (!whole) return;
  const CallTrace trace = instance.refresh();
  if (trace.status == DRIFTD_OK && !trace.unchanged) return;
  throw RuleBroken(fmt::format("the refresh after {} answered {}; a cancelled call leaves the instance as it was",
                               after, trace.unchanged ? "`unchanged` without a cursor" : trace.why()));
}

void past(const Subject& subject) {
  const Instance instance(subject);
  const auto whole = try_list(instance);
  CallFaults late;
  late.time = milliseconds(-1000);
  ask_all(instance, whole, late, "with a deadline that had passed");
  expect_works_again(instance, whole, "one with a deadline that had passed");
}

void cancel_before(const Subject& subject) {
  const Instance instance(subject);
  const auto whole = try_list(instance);
  CallFaults cancelled;
  cancelled.cancel_at = 0;
  ask_all(instance, whole, cancelled, "cancelled before the start");
  expect_works_again(instance, whole, "one that was cancelled before the start");
}

void sweep_open(const Subject& subject, std::mt19937_64& random) {
  const auto [trace, instance] = Instance::open(subject, subject.settings_json, subject.secrets);
  for (const auto k : spread(random, trace.callbacks, 20)) {
    CallFaults faults;
    faults.cancel_at = k;
    (void)Instance::open(subject, subject.settings_json, subject.secrets, faults);
  }
}

/// Cancels at each host function of a recorded refresh, or at as many as the time allows.
void sweep_refresh(const Instance& instance, std::mt19937_64& random) {
  const CallTrace recorded = list(instance);
  const Listing whole = listing_of(recorded);
  const auto until = Steady::now() + seconds(40);
  auto points = spread(random, recorded.callbacks, 200);
  if (points.size() > 8) std::shuffle(points.begin() + 4, points.end() - 4, random);
  for (const auto k : points) {
    if (Steady::now() > until) break;
    CallFaults faults;
    faults.cancel_at = k;
    const auto* function = k <= recorded.functions.size() ? recorded.functions[k - 1] : "a host function";
    const std::string when = fmt::format("cancelled at host function {} of {} ({})", k, recorded.callbacks, function);
    expect_true_completes(instance, whole, instance.refresh({}, faults), when);
    expect_works_again(instance, whole, "one that was " + when);
  }
}

void sweep_read(const Instance& instance, std::mt19937_64& random) {
  const auto whole = try_list(instance);
  const auto ids = first_of(whole, 5);
  if (ids.empty()) return;
  const CallTrace recorded = instance.read(ids);
  const auto until = Steady::now() + seconds(15);
  for (const auto k : spread(random, recorded.callbacks, 60)) {
    if (Steady::now() > until) break;
    CallFaults faults;
    faults.cancel_at = k;
    (void)instance.read(ids, faults);
  }
  const CallTrace again = instance.read(ids);
  if (recorded.status == DRIFTD_OK && again.status != DRIFTD_OK) {
    throw RuleBroken(fmt::format("the read after cancelled ones answered {}", again.why()));
  }
}

void cancel_sweep(const Subject& subject) {
  auto random = random_of(subject, "deadline.cancel_sweep");
  sweep_open(subject, random);
  const Instance instance(subject);
  sweep_refresh(instance, random);
  sweep_read(instance, random);
}

void cancel_watch(const Subject& subject) {
  const Instance instance(subject);
  if (!instance.provider().info().has_watch) throw CheckNotApplicable("does not offer driftd.watch/1");
  CallFaults longest;
  longest.time = std::chrono::hours(1);
  for (const auto before : {milliseconds(0), milliseconds(50), milliseconds(500)}) {
    RunningCall watch = instance.start(Function::watch, {}, longest);
    const bool by_itself = before.count() > 0 && watch.returned_within(before);
    watch.cancel();
    const CallTrace trace = watch.wait();
    if (by_itself && trace.status == DRIFTD_UNSUPPORTED)
      throw CheckNotApplicable("does not watch with these settings: " + trace.why());
    if (by_itself && trace.status != DRIFTD_OK) throw CheckNotMade(fmt::format("watch answered {}", trace.why()));
  }
  CallFaults cancelled = longest;
  cancelled.cancel_at = 0;
  (void)instance.start(Function::watch, {}, cancelled).wait();
}

void wake_often(const Instance& instance, const char* when) {
  constexpr int kThreads = 4, kTimes = 250;
  std::vector<std::shared_ptr<Job>> jobs;
  for (int i = 0; i < kThreads; ++i) {
    jobs.push_back(Job::start([&instance] {
      for (int n = 0; n < kTimes; ++n) instance.wake();
    }));
  }
  for (const auto& job : jobs) {
    if (!job->wait(milliseconds(1000))) {
      throw RuleBroken(
          fmt::format("{} calls of wake did not return within a second {}; wake takes no lock that a call holds "
                      "and does no I/O",
                      kThreads * kTimes, when));
    }
  }
}

void wake(const Subject& subject) {
  static const Instance* instance = nullptr;  // must outlive threads that never return
  instance = new Instance(subject);
  const auto whole = try_list(*instance);
  wake_often(*instance, "while no call is in progress");
  const auto gate = std::make_shared<Gate>();
  CallFaults held;
  held.hook = [gate](HostCall&) { gate->pass(); };
  RunningCall refresh = instance->start(Function::refresh, {}, held);
  while (!refresh.returned() && !gate->reached(milliseconds(20))) continue;
  wake_often(*instance, "while a refresh is in the middle of a host function");
  gate->open();
  const CallTrace trace = refresh.wait();
  if (whole && trace.status != DRIFTD_OK) {
    throw RuleBroken(
        fmt::format("a refresh that was woken but not cancelled answered {}; wake is a nudge to look at "
                    "cancelled(), no cancel",
                    trace.why()));
  }
  expect_works_again(*instance, whole, "a thousand wakes");
}

CallTrace health_in_time(const Instance& instance, const char* when) {
  CallFaults faults;
  faults.time = kHealthLimit;
  RunningCall health = instance.start(Function::health, {}, faults);
  if (!health.returned_within(kHealthLimit + kHealthSlack)) {
    throw RuleBroken(
        fmt::format("health did not answer within {} ms {}; give it a connection of its own and a limit of time",
                    kHealthLimit.count(), when));
  }
  CallTrace trace = health.wait();
  if (trace.status == DRIFTD_OK && trace.health.size() != 1) {
    throw RuleBroken(
        fmt::format("health answered OK and pushed {} reports {}; expected one", trace.health.size(), when));
  }
  return trace;
}

std::unique_ptr<Instance> pointed(const Subject& subject, const BlackHole& hole) {
  const std::string settings =
      settings_with_peer(subject, Provider::load(subject).loaded().settings_schema, hole.host(), hole.port());
  auto [trace, instance] = Instance::open(subject, settings, subject.secrets);
  if (instance == nullptr) throw CheckNotMade(fmt::format("open with a peer of loopback answered {}", trace.why()));
  return std::move(instance);
}

void fall_into(const Subject& subject, BlackHole::Kind kind) {
  const BlackHole hole(kind);
  const auto instance = pointed(subject, hole);
  RunningCall refresh = instance->start(Function::refresh, CallArguments{}, CallFaults{});
  (void)refresh.returned_within(milliseconds(300));
  refresh.cancel();
  (void)refresh.wait();
  CallFaults brief;
  brief.time = milliseconds(200);
  const CallTrace late = instance->refresh({}, brief);
  if (late.status == DRIFTD_OK && !late.complete().empty()) {
    throw RuleBroken("a refresh whose peer never answered marked something COMPLETE");
  }
  (void)instance->read({{{instance->provider().info().kinds.front(), "x"}, {}}}, brief);
}

void black_hole(const Subject& subject) {
  fall_into(subject, BlackHole::Kind::deaf);
  fall_into(subject, BlackHole::Kind::full);
}

void health_in_black_hole(const Subject& subject) {
  try {
    const BlackHole hole(BlackHole::Kind::deaf);
    const auto instance = pointed(subject, hole);
    RunningCall refresh = instance->start(Function::refresh, CallArguments{}, CallFaults{});
    (void)health_in_time(*instance, "while a refresh waits for a peer that never answers");
    refresh.cancel();
    (void)refresh.wait();
  } catch (const CheckNotMade&) {
    set_progress("no black hole for health");  // deadline.black_hole reports why; health was already checked without
                                               // one
  }
}

void health(const Subject& subject) {
  const Instance instance(subject);
  (void)health_in_time(instance, "on a new instance");
  const auto gate = std::make_shared<Gate>();
  CallFaults held;
  held.hook = [gate](HostCall&) { gate->pass(); };
  RunningCall refresh = instance.start(Function::refresh, {}, held);
  while (!refresh.returned() && !gate->reached(milliseconds(20))) continue;
  try {
    (void)health_in_time(instance, "while a refresh is held up");
  } catch (...) {
    gate->open();
    (void)refresh.wait();
    throw;
  }
  gate->open();
  (void)refresh.wait();
  health_in_black_hole(subject);
}

void close(const Subject& subject) {
  Instance(subject).close();
  Instance used(subject);
  (void)used.refresh();
  CallFaults cancelled;
  cancelled.cancel_at = 1;
  (void)used.refresh({}, cancelled);
  used.close();
  if (!Provider::load(subject).info().has_watch) return;
  Instance watched(subject);
  RunningCall watch = watched.start(Function::watch, CallArguments{}, CallFaults{});
  (void)watch.returned_within(milliseconds(100));
  watch.cancel();
  (void)watch.wait();
  watched.close();
}

constexpr Check kDeadlineChecks[] = {
    {"deadline.past", Level::must,
     "a deadline that passed already: back within the grace time, no COMPLETE that is not true", seconds(100), &past},
    {"deadline.cancel_before", Level::must, "cancelled before the start: back within the grace time", seconds(100),
     &cancel_before},
    {"deadline.cancel_sweep", Level::must,
     "cancelled at each host callback in turn: back within the grace time, and the next call works", seconds(150),
     &cancel_sweep},
    {"deadline.cancel_watch", Level::must, "a watch returns within the grace time of cancel and wake", seconds(100),
     &cancel_watch},
    {"deadline.wake", Level::must, "wake returns at once, from any thread, a thousand times, in and out of calls",
     seconds(100), &wake},
    {"deadline.black_hole", Level::must,
     "blocked on a peer that never answers: back within the grace time of cancel and wake", seconds(100), &black_hole},
    {"deadline.health", Level::must, "health answers within a second, also while a refresh is held up", seconds(100),
     &health},
    {"deadline.close", Level::must, "close returns within the grace time", seconds(100), &close},
};

}  // namespace

std::span<const Check> deadline_checks() { return kDeadlineChecks; }

}  // namespace driftd::check
