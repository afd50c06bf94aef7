// SPDX-License-Identifier: Apache-2.0
#include "http/connection_guard.hpp"

#include <gmock/gmock.h>
#include <stdexcept>

#include "world.hpp"

namespace driftd::http {
namespace {

struct HttpConsent : ::testing::Test {
  testing::Hosted hosted;
  sdk::Call call{hosted.handle()};
  int asked = 0;
  std::function<void()> answer = [] {};
  static Endpoints to(const std::string& address) { return {address, "127.0.0.1", 6443, 50000}; }
  ConnectionGuard guard{[this](sdk::Call&) {
    ++asked;
    answer();
  }};
};

TEST_F(HttpConsent, IsAskedForOncePerConnection) {
  guard.check(call, to("a"), true);
  guard.check(call, to("a"), false);
  guard.check(call, to("b"), true);
  EXPECT_EQ(asked, 2);
  guard.check(call, to("a"), true);  // the same ports, made anew
  EXPECT_EQ(asked, 3);
}

TEST_F(HttpConsent, IsOfAConnectionByBothOfItsEnds) {
  const Endpoints one{"::1", "::1", 6443, 50000};
  guard.check(call, one, true);
  for (Endpoints other : {Endpoints{"::2", "::1", 6443, 50000}, Endpoints{"::1", "::2", 6443, 50000},
                          Endpoints{"::1", "::1", 6444, 50000}, Endpoints{"::1", "::1", 6443, 50001}}) {
    const int before = asked;
    guard.check(call, other, false);
    EXPECT_EQ(asked, before + 1);
  }
  guard.check(call, one, false);
  EXPECT_EQ(asked, 5);
}

TEST_F(HttpConsent, TheEndOfACallRefusesNothingToAnother) {
  answer = [] { throw sdk::Failure(DRIFTD_CANCELLED, "cancelled"); };
  EXPECT_THROW(guard.check(call, to("a"), true), sdk::Failure);
  EXPECT_FALSE(guard.take_refusal());
  answer = [] {};
  guard.check(call, to("a"), false);
  EXPECT_EQ(asked, 2);
}

TEST_F(HttpConsent, IsAskedForByWhoeverComesFirstOverAConnection) {
  guard.check(call, to("made by a request that timed out before it came here"), false);
  EXPECT_EQ(asked, 1);
}

TEST_F(HttpConsent, RefusedOnceIsRefusedForTheStepToAllThatIsNotAgreedTo) {
  guard.check(call, to("a"), true);
  answer = [] { throw sdk::Failure(DRIFTD_UNAVAILABLE, "somebody else answers"); };
  EXPECT_THROW(guard.check(call, to("b"), true), sdk::Failure);
  answer = [] {};
  for (const char* ends : {"b", "c"}) EXPECT_THROW(guard.check(call, to(ends), false), sdk::Failure) << ends;
  EXPECT_THROW(guard.check(call, to("c"), true), sdk::Failure);
  guard.check(call, to("a"), false);
  EXPECT_EQ(asked, 2);
  EXPECT_STREQ(guard.take_refusal().value().what(), "somebody else answers");
  EXPECT_FALSE(guard.take_refusal());
  guard.check(call, to("b"), false);
  EXPECT_EQ(asked, 3) << "a step later it is asked again";
}

TEST_F(HttpConsent, EndsWithItsConnection) {
  guard.check(call, to("a"), true);
  answer = [] { throw sdk::Failure(DRIFTD_UNAVAILABLE, "somebody else answers"); };
  EXPECT_THROW(guard.check(call, to("a"), true), sdk::Failure) << "the same ports, made anew";
  guard.take_refusal();
  EXPECT_THROW(guard.check(call, to("a"), false), sdk::Failure) << "what was agreed to was another connection";
  guard.take_refusal();
  answer = [] {};
  guard.check(call, to("a"), false);
  guard.forget();
  guard.check(call, to("a"), false);
  EXPECT_EQ(asked, 5);
}

TEST_F(HttpConsent, TakesAnythingThrownForARefusal) {
  for (const auto& each :
       std::vector<std::function<void()>>{[] { throw std::runtime_error("no memory"); }, [] { throw 7; }}) {
    answer = each;
    EXPECT_THROW(guard.check(call, to("a"), true), sdk::Failure);
    EXPECT_EQ(guard.take_refusal().value().code, DRIFTD_INTERNAL);
  }
}

TEST_F(HttpConsent, RemembersSoManyAndAsksAgainBeyond) {
  for (int i = 0; i < 1000; ++i) guard.check(call, to(std::to_string(i)), true);
  const int before = asked;
  guard.check(call, to("999"), false);
  EXPECT_EQ(asked, before);
  guard.check(call, to("0"), false);
  EXPECT_EQ(asked, before + 1);
}

}  // namespace
}  // namespace driftd::http
