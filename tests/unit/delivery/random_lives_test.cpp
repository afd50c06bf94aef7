// SPDX-License-Identifier: Apache-2.0
// Random lives of one runner: commits, answers, failures of the store and kills in any order. Everything committed is
// settled in the end, no wake-up is missed, and a kill repeats 256 events at most.
#include "live.hpp"

namespace driftd::delivery::test {
namespace {

using namespace std::chrono_literals;

/// Random lives of one runner. The seed names the case.
class LiveProperty : public ::testing::TestWithParam<unsigned> {
 protected:
  std::size_t pick(std::size_t below) { return std::uniform_int_distribution<std::size_t>(0, below - 1)(random_); }
  bool chance(int percent) { return pick(100) < static_cast<std::size_t>(percent); }
  Outcome outcome(const LaneWorld& world) {
    if (chance(80)) return Outcome::delivered;
    if (chance(40)) return Outcome::refused;
    if (chance(30)) return Outcome::retry_sink;
    return !world.to.policy.forever && chance(20) ? Outcome::permanent : Outcome::retry_event;
  }
  void step(LaneWorld& world);
  void restart(LaneWorld& world);
  void command(LaneWorld& world);
  void crowd(LaneWorld& world);
  void heal(LaneWorld& world);

  std::mt19937 random_{GetParam()};
  std::size_t got_before_ = 0;
  std::set<std::int64_t> ever_;  ///< acknowledged before the last kill
};

void LiveProperty::command(LaneWorld& world) {
  core::Control::Replay request;
  request.sink = "s";
  request.from_seq = static_cast<std::int64_t>(pick(static_cast<std::size_t>(world.committed()) + 1));
  if (chance(30)) {
    (void)world.ask(world.relay->replay(request));
  } else {
    (void)world.ask(world.relay->dead_letter("s", chance(50) ? "replay" : "drop", {}));
  }
}

void LiveProperty::restart(LaneWorld& world) {
  world.kill();
  ever_.insert(world.to.got.begin(), world.to.got.end());
  got_before_ = world.to.got.size();
  world.start();
}

void LiveProperty::step(LaneWorld& world) {
  switch (pick(12)) {
    case 0:
      world.ring(static_cast<int>(pick(400)), 30);
      break;
    case 1:
      world.payload = chance(20) ? kLarge : 0;
      world.ring(1 + static_cast<int>(pick(6)), chance(50) ? 1 : 30);
      world.payload = 0;
      break;
    case 2:
      world.to.answer_all();
      break;
    case 3:
      world.to.answer_all(of(outcome(world)));
      break;
    case 4:
    case 5:
    case 6:
      for (std::size_t n = pick(50); n > 0 && !world.to.open.empty(); --n) {
        world.to.answer(pick(world.to.open.size()), of(outcome(world)));
      }
      break;
    case 7:
      world.outbox.broken = chance(30);
      break;
    case 8:
      world.outbox.save_fails = chance(30);
      break;
    case 9:
      if (chance(50))
        world.outbox.slow_saves = true;
      else
        world.outbox.release();
      break;
    case 10:
      world.pass(std::chrono::milliseconds(pick(20'000)));
      break;
    default:
      if (chance(20))
        restart(world);
      else
        command(world);
  }
  world.relay->watch();  // between the event and the run of the runner that it wakes
  world.settle();
  world.pass(0s);
}

/// More than kWindow events wait behind failing ones.
void LiveProperty::crowd(LaneWorld& world) {
  world.to.at_once = [](const auto&) { return of(Outcome::retry_event); };
  for (int i = 0; i < 11; ++i) {
    world.ring(1'000, 100);
    world.settle();
    world.pass(10s);
  }
  world.to.at_once = [](const auto&) { return std::nullopt; };
}

/// Everything answers again, and nothing more is committed.
void LiveProperty::heal(LaneWorld& world) {
  world.outbox.broken = world.outbox.save_fails = false;
  world.outbox.release();
  world.to.at_once = [](const auto&) { return Attempt{}; };
  world.to.answer_all();
  world.settle();
  const auto step = world.to.policy.forever ? std::chrono::milliseconds(1'000) : std::chrono::milliseconds(600'000);
  for (int i = 0; i < 300 && !world.over(); ++i) world.pass(step);
}

TEST_P(LiveProperty, EverythingCommittedIsSettledAndNoWakeUpIsMissed) {
  LaneWorld world(GetParam() % 2 == 0 ? core::RetryPolicy{} : webhook_policy());
  if (GetParam() % 5 == 1) world.settings.max_exceptions = 1 + pick(600);
  world.start();
  if (GetParam() % 5 == 2) crowd(world);
  for (int i = 0; i < 400; ++i) {
    step(world);
    ASSERT_EQ(world.view().missed_wakeups, 0U) << "step " << i;
    ASSERT_FALSE(world.to.two_of_a_key) << "step " << i;
    int repeated = 0;
    for (std::size_t n = got_before_; n < world.to.got.size(); ++n)
      repeated += ever_.count(world.to.got[n]) != 0 ? 1 : 0;
    ASSERT_LE(repeated, 256) << "step " << i;
  }
  heal(world);
  const auto view = world.view();
  ASSERT_TRUE(world.over()) << view.state << " " << view.last_error << ": " << world.low_water() << " of "
                            << world.committed() << ", " << view.waiting << " wait";
  EXPECT_EQ(view.missed_wakeups, 0U);
  EXPECT_EQ(view.stalled_seconds, 0);
}

INSTANTIATE_TEST_SUITE_P(Seeds, LiveProperty, ::testing::Range(1U, 41U));

}  // namespace
}  // namespace driftd::delivery::test
