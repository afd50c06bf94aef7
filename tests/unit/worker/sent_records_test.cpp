// SPDX-License-Identifier: Apache-2.0
// Which records a refresh may leave out, because the agent has them: only those that are the same in all that is
// judged.
#include "worker/sent_records.hpp"

#include <gtest/gtest.h>

namespace driftd::worker {
namespace {

driftd_str text(std::string_view s) { return {s.data(), s.size()}; }

class SentRecordsTest : public testing::Test {
 protected:
  SentRecordsTest() { sent.begin(7, true, {}); }
  static driftd_record record(std::string_view id, std::string_view body = R"({"a":1})") {
    driftd_record out{};
    out.size = sizeof out;
    out.kind = text("thing");
    out.id = text(id);
    out.body = text(body);
    return out;
  }
  /// Gives a record as the plugin does, and returns true if it is left out.
  bool left_out(const driftd_record& given) {
    const auto raw = sent.raw_of(given, "own");
    if (!raw) return false;
    const auto known = sent.known(given, *raw);
    if (!known) sent.sent(*raw, {++made, 1});
    return known.has_value();
  }
  /// A refresh of three records, the first of which is never left out.
  std::vector<bool> refresh(const driftd_record& second, std::vector<core::ResourceId> whole = {}) {
    sent.begin(7, true, std::move(whole));
    return {left_out(record("first")), left_out(second), left_out(record("third"))};
  }
  SentRecords sent;
  std::uint64_t made = 0;
};

TEST_F(SentRecordsTest, WhatWasSentIsLeftOutTheSecondTimeButForTheFirstRecord) {
  EXPECT_EQ(refresh(record("second")), (std::vector{false, false, false}));
  EXPECT_EQ(refresh(record("second")), (std::vector{false, true, true}));
  EXPECT_EQ(refresh(record("second")), (std::vector{false, true, true}));
}

TEST_F(SentRecordsTest, TheDigestIsTheOneUnderWhichItWasSent) {
  const driftd_record one = record("one");
  sent.sent(*sent.raw_of(one, "own"), {41, 42});
  left_out(record("first"));
  EXPECT_EQ(sent.known(one, *sent.raw_of(one, "own")), (Digest{41, 42}));
}

TEST_F(SentRecordsTest, ADifferenceInAnythingThatIsJudgedIsSent) {
  const driftd_str secret = text("a");
  driftd_record with_secret = record("second"), renamed = record("second"), revised = record("second");
  with_secret.sensitive = &secret;
  with_secret.sensitive_count = 1;
  renamed.external_name = text("uuid-2");
  revised.schema_revision = 2;
  for (const auto& other : {record("second", R"({"a":2})"), with_secret, renamed, revised}) {
    refresh(record("second"));
    ASSERT_TRUE(refresh(record("second"))[1]);
    EXPECT_FALSE(refresh(other)[1]);
    EXPECT_TRUE(refresh(other)[1]);
  }
}

TEST_F(SentRecordsTest, WhatIsNotJudgedIsNoReasonToSendARecord) {
  refresh(record("second"));
  driftd_record other = record("second");
  other.version = text("43");
  other.status = text(R"({"ready":2})");
  EXPECT_TRUE(refresh(other)[1]);
}

TEST_F(SentRecordsTest, WhatTheAgentWantsWholeIsSentWhole) {
  refresh(record("second"));
  EXPECT_EQ(refresh(record("second"), {{"thing", "second"}}), (std::vector{false, false, true}));
}

TEST_F(SentRecordsTest, NothingIsLeftOutOfARefreshThatTakesNoDigests) {
  refresh(record("second"));
  sent.begin(7, false, {});
  EXPECT_FALSE(left_out(record("first")));
  EXPECT_FALSE(left_out(record("second")));
}

TEST_F(SentRecordsTest, WhatWasRefusedIsNotKnown) {
  refresh(record("second"));
  sent.forget(*sent.raw_of(record("second"), "own"));
  EXPECT_FALSE(refresh(record("second"))[1]);
}

TEST_F(SentRecordsTest, RecordsOfOtherBackendsTombstonesUnreadOnesAndBadPointersAlwaysGoTheUsualWay) {
  driftd_record other = record("x"), gone = record("x"), bad = record("x"), bad_list = record("x"), part = record("x");
  const driftd_unread unread{sizeof unread, DRIFTD_DENIED, text("b"), text("denied")};
  part.unread = &unread;
  part.unread_count = 1;
  part.unread_stride = sizeof unread;
  other.backend = text("another");
  gone.tombstone = 1;
  bad.body = {nullptr, 7};
  bad_list.sensitive_count = 3;
  for (const auto& each : {other, gone, bad, bad_list, part}) EXPECT_FALSE(sent.raw_of(each, "own"));
  other.backend = text("own");
  EXPECT_TRUE(sent.raw_of(other, "own"));
}

TEST_F(SentRecordsTest, ResourcesThatAreGoneAreForgottenSomeTime) {
  for (int round = 0; round < 40; ++round) {
    sent.begin(7, true, {});
    for (int i = 0; i < 100; ++i) left_out(record("r" + std::to_string(round * 100 + i)));
  }
  EXPECT_LT(sent.size(), 1'400u);
}

}  // namespace
}  // namespace driftd::worker
