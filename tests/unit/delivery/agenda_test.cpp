// SPDX-License-Identifier: Apache-2.0
// In any situation, a sleeping runner has nothing to do, and wakes when it has.
#include <gtest/gtest.h>
#include <map>
#include <random>

#include "delivery/agenda.hpp"

namespace driftd::delivery::test {
namespace {

using namespace std::chrono_literals;

class AnySituation {
 public:
  explicit AnySituation(unsigned seed) : random_(seed) {}
  Situation next() {
    Situation s;
    s.now = Time{} + 1'000h;
    s.stopping = chance(10);
    s.drain_until = around(s.now);
    s.in_flight = chance(40) ? 0 : number(10);
    s.store = {!chance(10), chance(10), chance(60), chance(20), chance(10) ? around(s.now) : Time{}};
    s.endpoint = {any_state(), around(s.now), around(s.now), 8};
    if (s.endpoint.state == EndpointState::circuit_open) s.endpoint.open_until = s.now + 1s;
    s.waiting.loaded = number(3'000);
    s.waiting.loaded_bytes = chance(80) ? number(kLoadedBytes) : number(3 * kLoadedBytes);
    s.waiting.plain = s.waiting.loaded + number(9'000);
    if (chance(80)) s.waiting.next_loaded = around(s.now);
    if (chance(50)) s.waiting.next_unloaded = around(s.now);
    s.waiting.at_exception_limit = chance(20);
    s.waiting.behind = chance(20);
    s.save.useful = chance(60);
    s.save.urgent = chance(10);
    s.save.saving = chance(20);
    s.save.at = around(s.now);
    s.save.unsaved = number(300);
    s.save.unwritten = chance(80) ? number(kUnwritten) : number(20'000);
    s.save.at_risk = chance(80) ? number(256) : 256;
    s.replay.unplanned = chance(5);
    s.replay.unfetched = chance(60);
    s.replay.ready = number(2 * kReplaysAhead);
    s.replay.bytes = chance(80) ? 0 : number(2 * kLoadedBytes);
    if (chance(60)) s.replay.next = around(s.now);
    return s;
  }

 private:
  EndpointState any_state() {
    if (chance(50)) return EndpointState::ready;
    constexpr std::size_t kStates = static_cast<std::size_t>(EndpointState::ready) + 1;
    return static_cast<EndpointState>(number(kStates));
  }
  std::size_t number(std::size_t below) { return std::uniform_int_distribution<std::size_t>(0, below - 1)(random_); }
  bool chance(std::size_t percent) { return number(100) < percent; }
  Time around(Time now) { return now + std::chrono::milliseconds(number(2'000)) - 1s; }
  std::mt19937 random_;
};

bool due(const std::optional<Time>& at, Time now) { return at && *at <= now; }

TEST(Agenda, ARunnerThatSleepsHasNothingToDo) {
  AnySituation any(1);
  int asleep = 0;
  for (int i = 0; i < 200'000; ++i) {
    const Situation s = any.next();
    if (next_duty(s).duty != Duty::sleep) continue;
    ++asleep;
    ASSERT_GT(next_duty(s).until, s.now) << i;
    const bool room = s.waiting.loaded_bytes < 2 * kLoadedBytes || s.in_flight == 0;
    ASSERT_FALSE(may_send(s) && s.now >= s.store.retry_at &&
                 (due(s.waiting.next_loaded, s.now) || (due(s.waiting.next_unloaded, s.now) && room)))
        << i;
    ASSERT_FALSE(s.store.opened && !s.store.rewinding && s.now >= s.store.retry_at && s.save.useful && !s.save.saving &&
                 (s.save.urgent || s.save.unsaved >= kSaveAt))
        << i;
    const bool full = s.store.fetching || s.waiting.loaded >= kLoaded || s.waiting.loaded_bytes >= kLoadedBytes ||
                      s.waiting.plain >= kWindow || s.waiting.at_exception_limit ||
                      (s.save.unwritten >= kUnwritten && (!s.save.useful || s.save.saving));
    ASSERT_FALSE(s.store.opened && s.endpoint.state != EndpointState::not_started && !s.store.rewinding &&
                 !s.stopping && s.now >= s.store.retry_at && !s.store.exhausted && !full)
        << i;
    ASSERT_TRUE(s.store.opened || s.now < s.store.retry_at) << i;
    const bool rewind_waits = s.store.rewinding && s.save.saving;
    ASSERT_TRUE(!s.stopping || s.in_flight > 0 || s.store.fetching || rewind_waits) << i;
  }
  EXPECT_GT(asleep, 5'000) << "or the test says nothing";
}

/// A runner that wakes by its timer has something to do, or sleeps on for a reason that lies in the future.
TEST(Agenda, ARunnerThatSleepsWakesWhenSomethingIsDue) {
  AnySituation any(2);
  for (int i = 0; i < 200'000; ++i) {
    Situation s = any.next();
    const Agenda agenda = next_duty(s);
    if (agenda.duty != Duty::sleep || agenda.until > s.now + 1h) continue;
    for (Time before = s.now; before + 100ms < agenda.until; before += 100ms) {
      s.now = before;
      ASSERT_EQ(next_duty(s).duty, Duty::sleep) << i << ": it was due earlier";
    }
    s.now = agenda.until;
    if (s.endpoint.state == EndpointState::circuit_open && s.now >= s.endpoint.open_until)
      s.endpoint.state = EndpointState::half_open;
    const Agenda then = next_duty(s);
    ASSERT_TRUE(then.duty != Duty::sleep || then.until > agenda.until) << i;
  }
}

/// The cursor is moved back only when nothing is under way that was begun at its present place.
TEST(Agenda, ARewindWaitsForWhatRunsBesideTheLoop) {
  Situation s;
  s.now = Time{} + 1h;
  s.endpoint.check_at = s.now + 60s;
  s.endpoint.state = EndpointState::ready;
  s.store.opened = s.store.rewinding = true;
  EXPECT_EQ(next_duty(s).duty, Duty::rewind);
  for (bool* const busy : {&s.store.fetching, &s.save.saving}) {
    *busy = true;
    EXPECT_EQ(next_duty(s).duty, Duty::sleep);
    *busy = false;
  }
  s.in_flight = 1;
  EXPECT_EQ(next_duty(s).duty, Duty::sleep);
}

/// stop() looks for new events once more: what that fetch brings and can be sent at once is sent before the end.
TEST(Agenda, AStoppingRunnerWaitsForItsLastFetch) {
  Situation s;
  s.now = Time{} + 1h;
  s.stopping = s.store.opened = true;
  s.drain_until = s.now + 10s;
  s.endpoint.state = EndpointState::ready;
  s.endpoint.max_in_flight = 8;
  EXPECT_EQ(next_duty(s).duty, Duty::fetch);
  s.store.fetching = s.store.exhausted = true;
  EXPECT_EQ(next_duty(s).duty, Duty::sleep) << "what it brings would not be sent";
  EXPECT_EQ(next_duty(s).until, s.drain_until) << "but a store that does not answer must not hold up the end";
  s.store.retry_at = s.now + 1s;
  EXPECT_EQ(next_duty(s).duty, Duty::sleep) << "also while a failed store is asked again";
  s.store.retry_at = {};
  s.store.fetching = false;
  EXPECT_EQ(next_duty(s).duty, Duty::end);
  s.store.fetching = true;
  s.now = s.drain_until;
  EXPECT_EQ(next_duty(s).duty, Duty::end);
}

/// Two fetches at once begin at the same place: what the first one brought may be settled and saved when the second one
/// brings it again, and is then sent twice.
TEST(Agenda, OneFetchAndOneSaveAtATime) {
  Situation s;
  s.now = Time{} + 1h;
  s.endpoint.check_at = s.now + 60s;
  s.endpoint.state = EndpointState::ready;
  s.store.opened = true;
  EXPECT_EQ(next_duty(s).duty, Duty::fetch);
  s.store.fetching = true;
  EXPECT_EQ(next_duty(s).duty, Duty::sleep);
  s.save.useful = s.save.urgent = true;
  EXPECT_EQ(next_duty(s).duty, Duty::save);
  s.save.saving = true;
  EXPECT_EQ(next_duty(s).duty, Duty::sleep);
}

/// Events that wait behind a failing one do not stop the fetch; only the limit of their memory does.
TEST(Agenda, WhatFailsKeepsNothingNewAway) {
  Situation s;
  s.now = Time{} + 1h;
  s.endpoint.check_at = s.now + 60s;
  s.store.opened = true;
  s.endpoint.state = EndpointState::ready;
  s.endpoint.max_in_flight = 256;
  EXPECT_EQ(next_duty(s).duty, Duty::fetch);
  s.save.unwritten = kUnwritten;
  s.save.useful = true;
  EXPECT_EQ(next_duty(s).duty, Duty::save) << "a bounded write first";
  s.save.unwritten = 0;
  s.save.useful = false;
  s.waiting.at_exception_limit = true;
  EXPECT_EQ(next_duty(s).duty, Duty::sleep);
}

/// Settled exceptions of the last process stay at risk until the runner has fetched up to them.
TEST(Agenda, ARunnerThatOnlyAFetchCanFreeFetches) {
  Situation s;
  s.now = Time{} + 1h;
  s.endpoint.check_at = s.now + 60s;
  s.store.opened = s.waiting.behind = true;
  s.endpoint.state = EndpointState::ready;
  s.endpoint.max_in_flight = 256;
  s.waiting.next_loaded = Time{};
  s.save.at_risk = kMaxAtRisk;
  s.waiting.at_exception_limit = true;
  EXPECT_EQ(next_duty(s).duty, Duty::fetch);
  s.waiting.at_exception_limit = false;
  s.waiting.loaded = kLoaded;
  EXPECT_EQ(next_duty(s).duty, Duty::fetch);
}

TEST(Agenda, NothingHoldsAFullRunnerForEver) {
  Situation s;
  s.now = Time{} + 1h;
  s.endpoint.check_at = s.now + 60s;
  s.store.opened = s.store.exhausted = true;
  s.endpoint.state = EndpointState::ready;
  s.endpoint.max_in_flight = 256;
  s.waiting.next_loaded = Time{};
  s.save.at_risk = s.save.unsaved = kMaxAtRisk;
  s.save.useful = true;
  EXPECT_EQ(next_duty(s).duty, Duty::save);
  s.save.at_risk = s.save.unsaved = 0;
  s.save.useful = false;
  EXPECT_EQ(next_duty(s).duty, Duty::send);
}

/// The endpoint's state alone decides whether events are sent, and what the endpoint itself needs first.
TEST(Agenda, EachStateOfTheEndpointHasItsDuty) {
  Situation s;
  s.now = Time{} + 1h;
  s.endpoint = {EndpointState::ready, s.now + 5s, s.now + 60s, 8};
  s.store.opened = s.store.exhausted = true;
  s.waiting.next_loaded = Time{};
  const std::map<EndpointState, Duty> duties = {
      {EndpointState::disabled, Duty::sleep},    {EndpointState::circuit_open, Duty::sleep},
      {EndpointState::not_started, Duty::start}, {EndpointState::unchecked, Duty::check},
      {EndpointState::half_open, Duty::send},    {EndpointState::ready, Duty::send}};
  for (const auto& [state, duty] : duties) {
    s.endpoint.state = state;
    EXPECT_EQ(next_duty(s).duty, duty) << render(state);
    EXPECT_EQ(may_send(s), duty == Duty::send) << render(state);
  }
  s.endpoint.state = EndpointState::circuit_open;
  EXPECT_EQ(next_duty(s).until, s.endpoint.open_until);
  s.endpoint.state = EndpointState::half_open;
  s.in_flight = 1;
  EXPECT_FALSE(may_send(s)) << "one probe at a time";
}

}  // namespace
}  // namespace driftd::delivery::test
