// SPDX-License-Identifier: Apache-2.0
// What an operator reads of a sink that is given no events: why, and until when.
#include <gmock/gmock.h>

#include "live.hpp"

namespace driftd::delivery::test {
namespace {

using std::chrono::seconds;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class PausedSink : public ::testing::Test {
 protected:
  /// Commits `count` events of as many resources, which are under way then.
  void send(int count) {
    world_.start();
    world_.commit(count, count);
    ASSERT_EQ(world_.to.open.size(), static_cast<std::size_t>(count));
  }
  LaneWorld world_;
};

// Red before: what was still under way replaced the reason, and the state said only what the last answer was.
TEST_F(PausedSink, ADisabledSinkKeepsTheReasonWhateverIsAnsweredAfterwards) {
  send(4);
  world_.to.answer(0, {Outcome::disabled, "410 Gone", 0});
  world_.to.answer(0, {Outcome::retry_sink, "the worker exited with 1", 0});
  world_.to.answer(0, {Outcome::retry_event, "busy", 0});
  world_.to.answer(0, {Outcome::permanent, "too large", 0});
  world_.settle();
  const std::string why = "the receiver asked not to be called again (410 Gone)";
  EXPECT_EQ(world_.view().state,
            "disabled: " + why + "; nothing is sent until the agent restarts, its events are kept");
  EXPECT_EQ(world_.view().last_error, why);
}

TEST_F(PausedSink, AnOpenCircuitIsShownWithItsReasonAndTheTimeOfTheNextAttempt) {
  send(2);
  world_.to.answer(0, {Outcome::retry_sink, "connection refused", 0});
  world_.settle();
  world_.to.answer(0, {Outcome::permanent, "too large", 0});
  world_.settle();
  const std::string state = world_.view().state;
  EXPECT_THAT(state, StartsWith("circuit open: connection refused; next attempt at 2023-11-14T22:13:20."));
  EXPECT_THAT(state, EndsWith("Z"));
  EXPECT_THAT(world_.view().last_error, HasSubstr("too large"));
}

TEST_F(PausedSink, ALongRetryAfterMovesTheTimeThatIsShown) {
  send(1);
  world_.to.answer(0, {Outcome::retry_sink, "429 busy", 600'000});
  world_.settle();
  EXPECT_EQ(world_.view().state, "circuit open: 429 busy; next attempt at 2023-11-14T22:23:20.000Z");
  world_.pass(seconds(60));
  EXPECT_EQ(world_.view().state, "circuit open: 429 busy; next attempt at 2023-11-14T22:23:20.000Z")
      << "a time, and no span that must be read at the right moment";
}

TEST_F(PausedSink, AnAttemptThatIsUnderWayStillSaysWhatItFollows) {
  send(1);
  world_.to.answer(0, {Outcome::retry_sink, "connection refused", 0});
  world_.settle();
  world_.pass(seconds(1));
  ASSERT_EQ(world_.to.open.size(), 1U) << "one event as a probe, which is not answered";
  EXPECT_EQ(world_.view().state, "connected; it is tried again after: connection refused");
  world_.to.answer_all();
  world_.settle();
  EXPECT_EQ(world_.view().state, "connected");
}

}  // namespace
}  // namespace driftd::delivery::test
