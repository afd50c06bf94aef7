// SPDX-License-Identifier: Apache-2.0
#include "secrets/program_answer.hpp"

#include <gmock/gmock.h>

namespace driftd::secrets {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::Not;

constexpr Nanos kSecond = 1'000'000'000;
constexpr Nanos kNow = 1'795'291'200ll * kSecond;  // 2026-11-21T20:00:00Z

std::string credential(const std::string& expiry, const std::string& version = "v1") {
  return R"({"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/)" + version +
         R"(","spec":{},"status":{"expirationTimestamp":")" + expiry + R"(","token":"k8s-aws-v1.canary-token"}})";
}

std::string refusal(const std::string& output) {
  const auto answer = read_answer(output, kNow);
  return answer ? "it was taken" : answer.error().message;
}

TEST(Answer, IsTheTextWithoutItsLastNewline) {
  EXPECT_EQ(read_answer("secret\n", kNow)->text, "secret");
  EXPECT_EQ(read_answer("secret\r\n", kNow)->text, "secret");
  EXPECT_EQ(read_answer("two\nlines\n\n", kNow)->text, "two\nlines\n");
  EXPECT_EQ(read_answer("{\"not\": \"ours\"}", kNow)->expires_ns, 0);
}

TEST(Answer, OfNothingOrWithNulIsNone) {
  EXPECT_EQ(refusal(""), "its answer is empty");
  EXPECT_EQ(refusal("\n"), "its answer is empty");
  EXPECT_EQ(refusal(std::string("can\0ary", 7)), "its answer contains a NUL byte");
}

TEST(Answer, ExecCredentialStaysWhatItIsAndSaysWhenItExpires) {
  for (const char* version : {"v1", "v1beta1"}) {
    const auto answer = read_answer(credential("2026-11-21T20:14:00Z", version) + "\n", kNow);
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(answer->text, credential("2026-11-21T20:14:00Z", version));
    EXPECT_EQ(answer->expires_ns, kNow + 840 * kSecond);
  }
  EXPECT_EQ(read_answer(credential("2026-11-21T21:14:00.123456+01:00"), kNow)->expires_ns, kNow + 840 * kSecond);
  EXPECT_GT(read_answer(credential("9999-12-31T23:59:59Z"), kNow)->expires_ns, kNow)
      << "never: beyond what nanoseconds reach";
  EXPECT_EQ(read_answer(credential("2026-11-21T20:14:00Z", "v1alpha1"), kNow)->expires_ns, 0)
      << "another API: plain text";
}

TEST(Answer, ExpiredOrUnreadableTimesAreFaultsThatShowNoToken) {
  const std::string expired = refusal(credential("2026-11-21T19:59:59Z"));
  EXPECT_THAT(expired, HasSubstr("expired at 2026-11-21T19:59:59Z, and now it is 2026-11-21T20:00:00.000Z"));
  const std::string unreadable = refusal(credential("tomorrow"));
  EXPECT_THAT(unreadable, HasSubstr("is not a valid RFC 3339 time: 'tomorrow'"));
  EXPECT_THAT(refusal(credential("2027-02-30T00:00:00Z")), HasSubstr("is not a valid RFC 3339 time")) << "no such day";
  EXPECT_THAT(expired + unreadable, Not(HasSubstr("canary")));
}

TEST(NextRun, IsWithinTheIntervalOrWellBeforeTheEnd) {
  const ProgramAnswer plain{"a", 0};
  EXPECT_EQ(next_run(plain, seconds(300), kNow, 0), seconds(270));
  EXPECT_EQ(next_run(plain, seconds(300), kNow, 1), seconds(300));
  const ProgramAnswer token{"a", kNow + 840 * kSecond};
  EXPECT_EQ(next_run(token, seconds(5), kNow, 0), seconds(630));
  EXPECT_EQ(next_run(token, seconds(5), kNow, 1), seconds(714));
  EXPECT_EQ(next_run({"a", kNow + kSecond / 10}, seconds(5), kNow, 0), seconds(1)) << "no program runs without a pause";
}

TEST(LastLine, IsTheLastThatSaysSomethingOnOneLine) {
  EXPECT_EQ(last_line("first\nthe last \n \n", {}), "the last");
  EXPECT_EQ(last_line("", {}), "");
  EXPECT_EQ(last_line("a \x1b[31mred\x1b[0m b\n", {}), "a ?[31mred?[0m b");
  EXPECT_LE(last_line(std::string(5000, 'x'), {}).size(), 200u);
}

TEST(LastLine, HoldsNothingOfTheAnswers) {
  const std::string token = credential("2026-11-21T20:14:00Z");
  for (const std::string echoed : {"cannot use k8s-aws-v1.canary-token", "canary-1 is wrong", "canary-2 is wrong"}) {
    EXPECT_THAT(last_line("noise\n" + echoed, {token, "canary-1\ncanary-2\n"}), Not(HasSubstr("canary"))) << echoed;
    EXPECT_THAT(last_line("noise\n" + echoed, {token, "canary-1\ncanary-2\n"}), HasSubstr("[REDACTED]"));
  }
}

}  // namespace
}  // namespace driftd::secrets
