// SPDX-License-Identifier: Apache-2.0
// What the controller has accepted is done only when the brokers show it, also for whoever asks again.
#include "kafka/accepted.hpp"

#include <gmock/gmock.h>

namespace driftd::kafka {
namespace {

const sdk::Apply kRequest{false, {"topic", "o"}, {}, "key", {{0, "config[\"retention.ms\"]", "\"1000\"", "\"60000\""}}};

sdk::Record reading(const std::string& value) {
  sdk::Record out;
  out.kind = "topic";
  out.id = "o";
  out.body = R"({"config": {"retention.ms": ")" + value + R"("}})";
  return out;
}

sdk::Applied done() {
  sdk::Applied out;
  out.commands = {"kafka-configs.sh"};
  return out;
}

class KafkaAccepted : public testing::Test {
 protected:
  std::uint32_t accept(const std::function<bool()>& shown) {
    const auto out = answer_accepted(keys_, kRequest, done(), shown);
    EXPECT_TRUE(out.changed);
    return out.outcome;
  }
  std::uint32_t repeat(const std::string& value) {
    const auto out = answer_repeated(keys_, kRequest, reading(value));
    EXPECT_TRUE(out && !out->changed);
    return out ? out->outcome : DRIFTD_APPLY_FAILED;
  }
  common::AppliedRequests keys_;
  static constexpr std::uint32_t kSuccess = DRIFTD_APPLY_SUCCESS, kLater = DRIFTD_APPLY_REQUEUE_AFTER;
};

TEST_F(KafkaAccepted, IsNotDoneUntilItIsShown) {
  EXPECT_EQ(accept([] { return false; }), kLater);
  EXPECT_EQ(repeat("1000"), kLater);
  EXPECT_EQ(repeat("1000"), kLater) << "asking again does not make it true";
  EXPECT_EQ(repeat("60000"), kSuccess);
  EXPECT_EQ(repeat("1000"), kSuccess) << "somebody has set the old value since";
}

TEST_F(KafkaAccepted, IsDoneAtOnceIfItIsShown) {
  EXPECT_EQ(accept([] { return true; }), kSuccess);
  EXPECT_EQ(repeat("1000"), kSuccess);
}

TEST_F(KafkaAccepted, IsStillAwaitedIfLookingFails) {
  EXPECT_THROW(accept([]() -> bool { throw sdk::Failure(DRIFTD_UNAVAILABLE, "gone"); }), sdk::Failure);
  EXPECT_EQ(repeat("1000"), kLater) << "it is not sent again";
}

TEST_F(KafkaAccepted, AnotherValueThanBothIsAConflict) {
  EXPECT_EQ(accept([] { return false; }), kLater);
  try {
    answer_repeated(keys_, kRequest, reading("7"));
    FAIL();
  } catch (const sdk::Failure& failure) {
    EXPECT_EQ(failure.code, DRIFTD_CONFLICT);
  }
}

TEST_F(KafkaAccepted, UnknownKeyIsNoAnswer) { EXPECT_FALSE(answer_repeated(keys_, kRequest, reading("1000"))); }

}  // namespace
}  // namespace driftd::kafka
