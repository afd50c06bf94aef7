// SPDX-License-Identifier: Apache-2.0
#include "http/consent.hpp"

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
  static Ends to(const std::string& address) { return {address, "127.0.0.1", 6443, 50000}; }
  Consent consent{[this](sdk::Call&) {
    ++asked;
    answer();
  }};
};

TEST_F(HttpConsent, IsAskedForOncePerConnection) {
  consent.need(call, to("a"), true);
  consent.need(call, to("a"), false);
  consent.need(call, to("b"), true);
  EXPECT_EQ(asked, 2);
  consent.need(call, to("a"), true);  // the same ports, made anew
  EXPECT_EQ(asked, 3);
}

TEST_F(HttpConsent, IsOfAConnectionByBothOfItsEnds) {
  const Ends one{"::1", "::1", 6443, 50000};
  consent.need(call, one, true);
  for (Ends other : {Ends{"::2", "::1", 6443, 50000}, Ends{"::1", "::2", 6443, 50000}, Ends{"::1", "::1", 6444, 50000},
                     Ends{"::1", "::1", 6443, 50001}}) {
    const int before = asked;
    consent.need(call, other, false);
    EXPECT_EQ(asked, before + 1);
  }
  consent.need(call, one, false);
  EXPECT_EQ(asked, 5);
}

TEST_F(HttpConsent, TheEndOfACallRefusesNothingToAnother) {
  answer = [] { throw sdk::Failure(DRIFTD_CANCELLED, "cancelled"); };
  EXPECT_THROW(consent.need(call, to("a"), true), sdk::Failure);
  EXPECT_FALSE(consent.settle());
  answer = [] {};
  consent.need(call, to("a"), false);
  EXPECT_EQ(asked, 2);
}

TEST_F(HttpConsent, IsAskedForByWhoeverComesFirstOverAConnection) {
  consent.need(call, to("made by a request that timed out before it came here"), false);
  EXPECT_EQ(asked, 1);
}

TEST_F(HttpConsent, RefusedOnceIsRefusedForTheStepToAllThatIsNotAgreedTo) {
  consent.need(call, to("a"), true);
  answer = [] { throw sdk::Failure(DRIFTD_UNAVAILABLE, "somebody else answers"); };
  EXPECT_THROW(consent.need(call, to("b"), true), sdk::Failure);
  answer = [] {};
  for (const char* ends : {"b", "c"}) EXPECT_THROW(consent.need(call, to(ends), false), sdk::Failure) << ends;
  EXPECT_THROW(consent.need(call, to("c"), true), sdk::Failure);
  consent.need(call, to("a"), false);
  EXPECT_EQ(asked, 2);
  EXPECT_STREQ(consent.settle().value().what(), "somebody else answers");
  EXPECT_FALSE(consent.settle());
  consent.need(call, to("b"), false);
  EXPECT_EQ(asked, 3) << "a step later it is asked again";
}

TEST_F(HttpConsent, EndsWithItsConnection) {
  consent.need(call, to("a"), true);
  answer = [] { throw sdk::Failure(DRIFTD_UNAVAILABLE, "somebody else answers"); };
  EXPECT_THROW(consent.need(call, to("a"), true), sdk::Failure) << "the same ports, made anew";
  consent.settle();
  EXPECT_THROW(consent.need(call, to("a"), false), sdk::Failure) << "what was agreed to was another connection";
  consent.settle();
  answer = [] {};
  consent.need(call, to("a"), false);
  consent.forget();
  consent.need(call, to("a"), false);
  EXPECT_EQ(asked, 5);
}

TEST_F(HttpConsent, TakesAnythingThrownForARefusal) {
  for (const auto& each :
       std::vector<std::function<void()>>{[] { throw std::runtime_error("no memory"); }, [] { throw 7; }}) {
    answer = each;
    EXPECT_THROW(consent.need(call, to("a"), true), sdk::Failure);
    EXPECT_EQ(consent.settle().value().code, DRIFTD_INTERNAL);
  }
}

TEST_F(HttpConsent, RemembersSoManyAndAsksAgainBeyond) {
  for (int i = 0; i < 1000; ++i) consent.need(call, to(std::to_string(i)), true);
  const int before = asked;
  consent.need(call, to("999"), false);
  EXPECT_EQ(asked, before);
  consent.need(call, to("0"), false);
  EXPECT_EQ(asked, before + 1);
}

}  // namespace
}  // namespace driftd::http
