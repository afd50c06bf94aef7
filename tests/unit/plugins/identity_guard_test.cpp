// SPDX-License-Identifier: Apache-2.0
#include "common/identity_guard.hpp"

#include <gmock/gmock.h>

namespace driftd::common {
namespace {

std::string refusal(const std::function<void()>& of) {
  try {
    of();
  } catch (const sdk::Failure& failure) {
    EXPECT_EQ(failure.code, DRIFTD_UNAVAILABLE);
    return failure.what();
  }
  return "accepted";
}

struct Judged : testing::Test {
  IdentityGuard identity{"another cluster answers (cluster id"};
  std::string refresh(const std::string& met, const std::string& of_cursor = {}) {
    return refusal([&] { identity.check(met, of_cursor); });
  }
  std::string confirm(const std::string& met) const {
    return refusal([&] { identity.check(met); });
  }
};

TEST_F(Judged, AnotherOneIsRefusedUntilHealthHasToldOfIt) {
  identity.on_health("a");
  EXPECT_EQ(refresh("a"), "accepted");
  EXPECT_EQ(refresh("b"),
            "another cluster answers (cluster id b, before a): results are withheld until the agent has confirmed the "
            "new identity");
  EXPECT_EQ(identity.newest(), "b");
  EXPECT_NE(refresh("b"), "accepted") << "health still says a";
  identity.on_health("b");
  EXPECT_NE(confirm("b"), "accepted") << "no refresh was of it yet";
  EXPECT_EQ(refresh("b"), "accepted");
  EXPECT_EQ(confirm("b"), "accepted");
  EXPECT_NE(confirm("a"), "accepted");
}

TEST_F(Judged, TheFirstRefreshOfAWorkerIsHeldAgainstItsCursorElseAgainstHealth) {
  identity.on_health("a");
  EXPECT_NE(refresh("b"), "accepted") << "a full sweep has no cursor; the endpoint moved since health looked";
  IdentityGuard other("x");
  other.on_health("b");
  EXPECT_NE(refusal([&] { other.check("b", "a"); }), "accepted") << "the cursor is of another";
  EXPECT_EQ(refusal([&] { other.check("b", "a"); }), "accepted") << "health told of it, and the host asked again";
}

TEST_F(Judged, TheFirstRefreshIsHeldAgainstWhatTheHostHadJudgedNotAgainstALaterLook) {
  identity.on_health("a");
  identity.on_health("b");  // health is asked beside, too
  EXPECT_NE(refresh("b"), "accepted");
  EXPECT_EQ(refresh("b"), "accepted") << "the host asked again before it came back";
}

TEST_F(Judged, WhatNeverToldAnIdentityIsRight) {
  identity.on_health("");
  EXPECT_EQ(refresh(""), "accepted");
  EXPECT_EQ(confirm(""), "accepted");
}

TEST_F(Judged, WhatNoLongerTellsItsIdentityMayBeAnyoneAndIsRefused) {
  EXPECT_EQ(refresh("a"), "accepted");
  EXPECT_EQ(
      refresh(""),
      "the system at this endpoint no longer reports its identity (before a): results are withheld until it does");
  EXPECT_NE(confirm(""), "accepted");
  EXPECT_EQ(identity.newest(), "a");
  EXPECT_EQ(refresh("a"), "accepted");
  IdentityGuard asked("x");
  asked.on_health("a");
  EXPECT_NE(refusal([&] { asked.check(""); }), "accepted") << "a confirmation of a worker that has not refreshed yet";
  EXPECT_NE(refusal([&] { asked.check("b"); }), "accepted");
  EXPECT_EQ(asked.newest(), "a");
  IdentityGuard fresh("x");
  EXPECT_NE(refusal([&] { fresh.check("", "a"); }), "accepted") << "its cursor is of one that told";
}

}  // namespace
}  // namespace driftd::common
