// SPDX-License-Identifier: Apache-2.0
// In any situation, a sleeping runner has nothing to do, and wakes when it has.
#include <gtest/gtest.h>
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
    for (bool* flag : {&s.opened, &s.started}) *flag = !chance(10);
    for (bool* flag : {&s.stopping, &s.disabled, &s.rewinding, &s.must_check}) *flag = chance(10);
    for (bool* flag : {&s.exhausted, &s.worth_saving, &s.replay_sendable, &s.replay_unfetched}) *flag = chance(60);
    s.save_now = chance(10);
    s.replay_unplanned = chance(5);
    for (Time* time : {&s.store_at, &s.check_at, &s.save_at, &s.drain_until, &s.open_until, &s.replay_at})
      *time = around(s.now);
    if (!chance(10)) s.store_at = {};
    if (chance(80)) s.next_loaded = around(s.now);
    if (chance(50)) s.next_unloaded = around(s.now);
    s.circuit = static_cast<Circuit::State>(chance(60) ? 0 : 1 + number(2));
    if (s.circuit == Circuit::State::open) s.open_until = s.now + 1s;
    s.max_in_flight = 8;
    s.flying = chance(40) ? 0 : number(10);
    s.at_risk = chance(80) ? number(256) : 256;
    s.unsaved = number(300);
    s.loaded = number(3'000);
    s.loaded_bytes = chance(80) ? number(kLoadedBytes) : number(3 * kLoadedBytes);
    s.replay_bytes = chance(80) ? 0 : number(2 * kLoadedBytes);
    s.plain = s.loaded + number(9'000);
    s.unwritten = chance(80) ? number(kUnwritten) : number(20'000);
    s.at_exception_limit = chance(20);
    s.behind = chance(20);
    return s;
  }

 private:
  std::size_t number(std::size_t below) { return std::uniform_int_distribution<std::size_t>(0, below - 1)(random_); }
  bool chance(std::size_t percent) { return number(100) < percent; }
  Time around(Time now) { return now + std::chrono::milliseconds(number(2'000)) - 1s; }
  std::mt19937 random_;
};

bool due(const std::optional<Time>& at, Time now) { return at && *at <= now; }

TEST(Agenda, ALaneThatSleepsHasNothingToDo) {
  AnySituation any(1);
  int asleep = 0;
  for (int i = 0; i < 200'000; ++i) {
    const Situation s = any.next();
    if (next_duty(s).duty != Duty::sleep) continue;
    ++asleep;
    ASSERT_GT(next_duty(s).until, s.now) << i;
    const bool room = s.loaded_bytes < 2 * kLoadedBytes || s.flying == 0;
    ASSERT_FALSE(may_send(s) && s.now >= s.store_at &&
                 (due(s.next_loaded, s.now) || (due(s.next_unloaded, s.now) && room)))
        << i;
    ASSERT_FALSE(s.opened && !s.rewinding && s.now >= s.store_at && s.worth_saving &&
                 (s.save_now || s.unsaved >= kSaveAt))
        << i;
    const bool full = s.loaded >= kLoaded || s.loaded_bytes >= kLoadedBytes || s.plain >= kWindow ||
                      s.at_exception_limit || (s.unwritten >= kUnwritten && !s.worth_saving);
    ASSERT_FALSE(s.opened && s.started && !s.rewinding && !s.stopping && s.now >= s.store_at && !s.exhausted && !full)
        << i;
    ASSERT_TRUE(s.opened || s.now < s.store_at) << i;
    ASSERT_TRUE(!s.stopping || s.flying > 0) << i;
  }
  EXPECT_GT(asleep, 5'000) << "or the test says nothing";
}

/// A runner that wakes by its timer has something to do, or sleeps on for a reason that lies in the future.
TEST(Agenda, ALaneThatSleepsWakesWhenSomethingIsDue) {
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
    if (s.circuit == Circuit::State::open && s.now >= s.open_until) s.circuit = Circuit::State::half_open;
    const Agenda then = next_duty(s);
    ASSERT_TRUE(then.duty != Duty::sleep || then.until > agenda.until) << i;
  }
}

/// Events that wait behind a failing one do not stop the fetch; only the limit of their memory does.
TEST(Agenda, WhatFailsKeepsNothingNewAway) {
  Situation s;
  s.now = Time{} + 1h;
  s.check_at = s.now + 60s;
  s.opened = s.started = true;
  s.max_in_flight = 256;
  EXPECT_EQ(next_duty(s).duty, Duty::fetch);
  s.unwritten = kUnwritten;
  s.worth_saving = true;
  EXPECT_EQ(next_duty(s).duty, Duty::save) << "a bounded write first";
  s.unwritten = 0;
  s.worth_saving = false;
  s.at_exception_limit = true;
  EXPECT_EQ(next_duty(s).duty, Duty::sleep);
}

/// Settled exceptions of the last process stay at risk until the runner has fetched up to them.
TEST(Agenda, ALaneThatOnlyAFetchCanFreeFetches) {
  Situation s;
  s.now = Time{} + 1h;
  s.check_at = s.now + 60s;
  s.opened = s.started = s.behind = true;
  s.max_in_flight = 256;
  s.next_loaded = Time{};
  s.at_risk = kMaxAtRisk;
  s.at_exception_limit = true;
  EXPECT_EQ(next_duty(s).duty, Duty::fetch);
  s.at_exception_limit = false;
  s.loaded = kLoaded;
  EXPECT_EQ(next_duty(s).duty, Duty::fetch);
}

TEST(Agenda, NothingHoldsAFullLaneForEver) {
  Situation s;
  s.now = Time{} + 1h;
  s.check_at = s.now + 60s;
  s.opened = s.started = s.exhausted = true;
  s.max_in_flight = 256;
  s.next_loaded = Time{};
  s.at_risk = s.unsaved = kMaxAtRisk;
  s.worth_saving = true;
  EXPECT_EQ(next_duty(s).duty, Duty::save);
  s.at_risk = s.unsaved = 0;
  s.worth_saving = false;
  EXPECT_EQ(next_duty(s).duty, Duty::send);
}

}  // namespace
}  // namespace driftd::delivery::test
