// SPDX-License-Identifier: Apache-2.0
// Group probe: whether an endpoint can be reached is known within a second, whatever else happens.
#include <fmt/format.h>

#include "check/sink/groups.hpp"
#include "check/sink/stand.hpp"

namespace driftd::check::sink {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds kProbeLimit{1000}, kSlack{300};  // the slack is for a busy machine, not for the sink

CallTrace probe_in_time(const SinkInstance& instance, const std::string& when) {
  CallFaults faults;
  faults.time = kProbeLimit;
  RunningCall probe = instance.start_probe(faults);
  if (!probe.returned_within(kProbeLimit + kSlack)) {
    throw RuleBroken(fmt::format(
        "probe did not answer within {} ms {}; give it a connection of its own and a limit of time below a second",
        kProbeLimit.count(), when));
  }
  CallTrace trace = probe.wait();
  if (trace.status == DRIFTD_OK && trace.health.size() != 1) {
    throw RuleBroken(
        fmt::format("probe {} answered OK and pushed {} reports; expected one", when, trace.health.size()));
  }
  return trace;
}

void in_time(const Subject& subject) {
  Stand stand(subject, "probe.in_time");
  const auto instance = SinkInstance::open_plain(stand.subject());
  (void)probe_in_time(*instance, "on a new instance");
  const auto gate = std::make_shared<Gate>();
  CallFaults held;
  held.hook = [gate](HostCall&) { gate->pass(); };
  RunningCall deliver = instance->start_deliver(stand.events().full_batch(4), held);
  while (!deliver.returned() && !gate->reached(milliseconds(20))) continue;
  const auto release = [&] {
    gate->open();
    (void)deliver.wait();
  };
  try {
    (void)probe_in_time(*instance, "while a deliver is held up");
  } catch (...) {
    release();
    throw;
  }
  release();
}

void silent_peer(const Subject& subject) {
  Stand stand(subject, "probe.silent_peer");
  for (const auto kind : {BlackHole::Kind::deaf, BlackHole::Kind::full}) {
    const BlackHole peer = stand.black_hole(kind);
    const char* what = kind == BlackHole::Kind::deaf ? "of a peer that never answers" : "of a peer that never accepts";
    const auto instance = SinkInstance::open_plain(stand.pointed_at(peer));
    (void)probe_in_time(*instance, what);
    RunningCall deliver = instance->start_deliver({stand.events().next(0, std::string(8u << 20, 'x'))});
    (void)deliver.returned_within(milliseconds(200));
    (void)probe_in_time(*instance, fmt::format("{} while a deliver waits for it", what));
    deliver.cancel();
    (void)deliver.wait();
  }
}

void says_down(const Subject& subject) {
  Stand stand(subject, "probe.says_down");
  stand.expect_connects();
  const BlackHole refusing = stand.black_hole(BlackHole::Kind::refusing);
  const auto instance = SinkInstance::open_plain(stand.pointed_at(refusing));
  for (int i = 0; i < 2; ++i) {
    const CallTrace trace = probe_in_time(*instance, "of a peer that refuses connections");
    if (trace.status != DRIFTD_OK) {
      throw RuleBroken(
          fmt::format("a peer that refuses connections: expected OK and a report DOWN, found {}", trace.why()));
    }
    const auto& report = trace.health.front();
    if (report.state != core::HealthReport::State::down) {
      throw RuleBroken(
          "a peer that refuses connections: expected a report DOWN, found another state; `driftd status` "
          "would call the sink healthy");
    }
    if (report.reason.empty()) throw RuleBroken("the report DOWN has no reason; people read it in `driftd status`");
    (void)instance->deliver(stand.events().batch(1), [] {
      CallFaults brief;
      brief.time = milliseconds(500);
      return brief;
    }());
  }
}

constexpr Check kProbeChecks[] = {
    {"probe.in_time", Level::must, "probe answers within a second, also while a deliver is held up", seconds(60),
     &in_time},
    {"probe.silent_peer", Level::must, "probe answers within a second if the endpoint never answers", seconds(60),
     &silent_peer},
    {"probe.says_down", Level::must, "an endpoint that refuses connections is reported as down, with a reason",
     seconds(60), &says_down},
};

}  // namespace

std::span<const Check> probe_checks() { return kProbeChecks; }

}  // namespace driftd::check::sink
