// SPDX-License-Identifier: Apache-2.0
// Very many events wait behind failing ones; the others are delivered as if those did not exist.
#include "delivery/agenda.hpp"
#include "world.hpp"

namespace driftd::delivery::test {
namespace {

using namespace std::chrono_literals;

constexpr int kSick = 200;  ///< resources whose events the receiver refuses
constexpr int kCrowd = 12'000;

bool sick(const core::StoredEvent& event) { return event.key.rfind("sick", 0) == 0; }

/// Answers 500 to the events of sick resources, and accepts all others.
auto refuses_some() {
  return [](const core::StoredEvent& event) -> std::optional<Attempt> {
    return sick(event) ? Attempt{Outcome::retry_event, "HTTP 500 from ops", 0} : Attempt{};
  };
}

/// The first events of the sick resources fail one after the other, between healthy ones, so that the events are to
/// blame and not the receiver. Very many events of the same resources follow.
void crowd(LaneWorld& world, int count) {
  for (int i = 0; i < kSick; ++i) {
    world.ring(1, kSick, "sick");
    world.ring(20, 1'000);
    world.settle();
    world.pass(200ms);
  }
  for (int left = count - kSick; left > 0; left -= 400) {
    world.ring(std::min(left, 400), kSick, "sick");
    world.settle();
    world.pass(200ms);
  }
}

int healthy_not_got(const LaneWorld& world) {
  const std::set<std::int64_t> got(world.to.got.begin(), world.to.got.end());
  return static_cast<int>(
      std::count_if(world.outbox.memory.events.begin(), world.outbox.memory.events.end(),
                    [&](const auto& event) { return !sick(event) && got.count(event.stamp.seq) == 0; }));
}

void pass_often(LaneWorld& world, int times, std::chrono::nanoseconds by) {
  for (int i = 0; i < times; ++i) world.pass(by);
}

std::string logged(const std::function<void()>& during) {
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  during();
  return ::testing::internal::GetCapturedStdout() + ::testing::internal::GetCapturedStderr();
}

int count_of(const std::string& text, const std::string& part) {
  int out = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++out;
  return out;
}

class Crowd : public ::testing::TestWithParam<bool> {
 protected:
  Crowd() { world_.to.at_once = refuses_some(); }
  /// Makes the receiver accept everything from now on.
  void heal() {
    world_.to.at_once = [](const auto&) { return Attempt{}; };
    for (int i = 0; i < 300 && !world_.over(); ++i)
      world_.pass(GetParam() ? std::chrono::seconds(1) : std::chrono::seconds(600));
  }
  LaneWorld world_{GetParam() ? core::RetryPolicy{} : webhook_policy()};
};

TEST_P(Crowd, ThoseThatFailHoldBackNobodyElse) {
  world_.start();
  crowd(world_, kCrowd);
  ASSERT_GT(world_.view().waiting, static_cast<std::int64_t>(kWindow)) << "or the test says nothing";
  for (int i = 0; i < 5; ++i) {
    world_.commit(500, 500);
    pass_often(world_, 40, 10s);  // also past a circuit that those failures opened
    ASSERT_EQ(healthy_not_got(world_), 0) << world_.view().state;
  }
  EXPECT_EQ(world_.view().missed_wakeups, 0U);
  EXPECT_EQ(world_.low_water(), world_.committed()) << "nothing of it holds the cursor back";
  heal();
  EXPECT_TRUE(world_.over()) << world_.view().state << world_.view().waiting;
  EXPECT_FALSE(world_.to.two_of_a_key);
}

TEST_P(Crowd, ARestartFindsItAndHoldsBackNobodyElse) {
  world_.start();
  crowd(world_, kCrowd);
  const auto before = world_.view().waiting;
  world_.kill();
  world_.start();
  EXPECT_GE(world_.view().waiting, before - 256);
  world_.commit(500, 500);
  pass_often(world_, 40, 10s);
  EXPECT_EQ(healthy_not_got(world_), 0) << world_.view().state;
  heal();
  EXPECT_TRUE(world_.over()) << world_.view().state << world_.view().waiting;
}

/// Each write has a bounded size, however many events become exceptions at once.
TEST_P(Crowd, ABacklogOfThemIsWrittenInParts) {
  world_.start();
  crowd(world_, kSick);
  const auto before = world_.outbox.most_upserts;
  world_.commit(kCrowd, kSick, "sick");
  pass_often(world_, 20, 200ms);
  EXPECT_EQ(world_.low_water(), world_.committed());
  EXPECT_LE(std::max(before, world_.outbox.most_upserts), kUnwritten + 512U + kLoaded) << "with the page under way";
}

TEST_P(Crowd, AtTheBoundItTakesNothingNewAndSaysSoOnce) {
  world_.settings.max_exceptions = 3'000;
  world_.start();
  const std::string log = logged([&] {
    crowd(world_, 5'000);
    pass_often(world_, 5, 1s);
  });
  const std::string words = "as many as a sink may hold: it takes nothing new";
  EXPECT_EQ(count_of(log, words), 1) << log;
  EXPECT_NE(world_.view().state.find(words), std::string::npos) << world_.view().state;
  EXPECT_LT(world_.view().waiting, 3'000 + 512 + 1'024);
  EXPECT_EQ(world_.view().missed_wakeups, 0U);
  heal();
  EXPECT_TRUE(world_.over()) << world_.view().state << world_.view().waiting;
  EXPECT_EQ(world_.view().state, "connected");
}

INSTANTIATE_TEST_SUITE_P(Policies, Crowd, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "ForEver" : "Webhook"; });

}  // namespace
}  // namespace driftd::delivery::test
