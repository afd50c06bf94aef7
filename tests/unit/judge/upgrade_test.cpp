// SPDX-License-Identifier: Apache-2.0
// Semantics 10 with a provider that converts stored bodies: a newer schema revision neither hides nor creates drifts.
#include "core/judge/upgrade.hpp"
#include "unit/judge/resource_fixture.hpp"

namespace driftd::core {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// Revision 2 renames `timeout` to `timeout_ms`, an integer, and `verifier` to `secret`.
constexpr const char* kRevision2 = R"({"schema":"driftd-schema/1","kind":"role","revision":2,"class":"config",
  "attributes":{"secret":{"type":"string","class":"credential","sensitive":true},
    "verifier":{"type":"string","class":"credential","sensitive":true},
    "timeout_ms":{"type":"int"},"fresh":{"type":"int","since":2}}})";

class Upgrade : public ResourceFixture, public testing::Test {
 protected:
  Upgrade() {
    context.established = false;
    sees(R"({"a":1,"timeout":"1s"})");
    context.established = true;
  }
  void new_revision() {
    context.former[1] = context.schema;
    context.schema = schema_of(kRevision2);
  }
  /// Judges `body` with `upgraded` as the converted baseline.
  Judgement sees_upgraded(const std::string& upgraded, const std::string& body) {
    wait(kSecond);
    next.body = body;
    next.observed_ns = now();
    rules.generation = 7;
    context.rules = std::make_shared<const Rules>(rules);
    const Judgement out = judge_upgraded(context, row, Present{next, demoted}, upgraded);
    if (!out.dropped) row = out.next;
    return out;
  }
};

TEST_F(Upgrade, WhatDriftedUnderAnotherNameIsADriftAndNotANewBaseline) {
  new_revision();
  EXPECT_THAT(statuses(sees_upgraded(R"({"a":1,"timeout_ms":1000})", R"({"a":1,"timeout_ms":2000})")),
              ElementsAre("pending"));
  EXPECT_THAT(paths(drift()), ElementsAre("timeout_ms"));
  EXPECT_EQ(drift().changes[0].old_value, "1000");
  EXPECT_EQ(row.schema_revision, 2u);
}

TEST_F(Upgrade, WithoutOneTheRetypedAttributeIsANewBaseline) {
  new_revision();
  EXPECT_THAT(statuses(sees(R"({"a":1,"timeout_ms":2000})")), IsEmpty());
}

TEST_F(Upgrade, EqualValuesInTheNewFormAreNoDrift) {
  new_revision();
  EXPECT_THAT(statuses(sees_upgraded(R"({"a":1,"timeout_ms":1000})", R"({"a":1,"fresh":3,"timeout_ms":1000})")),
              IsEmpty());
  EXPECT_EQ(row.baseline, R"({"a":1,"fresh":3,"timeout_ms":1000})") << "what the revision brings is filled";
}

TEST_F(Upgrade, ADriftOnAnUntouchedPathStaysTheSameDrift) {
  sees(R"({"a":5,"timeout":"1s"})");
  const std::string id = drift().id;
  new_revision();
  EXPECT_THAT(statuses(sees_upgraded(R"({"a":1,"timeout_ms":1000})", R"({"a":5,"timeout_ms":1000})")), IsEmpty());
  EXPECT_EQ(drift().id, id);
  EXPECT_EQ(drift().status, DriftStatus::pending);
}

TEST_F(Upgrade, ADriftOnARenamedPathGoesOnUnderTheNewName) {
  sees(R"({"a":1,"timeout":"2s"})");
  const std::string id = drift().id;
  new_revision();
  EXPECT_THAT(statuses(sees_upgraded(R"({"a":1,"timeout_ms":1000})", R"({"a":1,"timeout_ms":2000})")),
              ElementsAre("pending:moved"));
  EXPECT_EQ(drift().id, id);
  EXPECT_THAT(paths(drift()), ElementsAre("timeout_ms"));
}

TEST_F(Upgrade, ADriftWhoseRenamedPathIsAsItWasEndsAsSupersededNotReverted) {
  sees(R"({"a":1,"timeout":"2s"})");
  new_revision();
  EXPECT_THAT(statuses(sees_upgraded(R"({"a":1,"timeout_ms":1000})", R"({"a":1,"timeout_ms":1000})")),
              ElementsAre("superseded"));
}

TEST_F(Upgrade, ADigestThatMovedIsFilledAndOneThatStayedIsCompared) {
  row.baseline = R"({"a":1,"timeout":"1s","verifier":)" + digest_value('a') + "}";
  new_revision();
  const std::string moved = R"({"a":1,"secret":)" + digest_value('a') + R"(,"timeout_ms":1000})";
  const std::string seen = R"({"a":1,"secret":)" + digest_value('b') + R"(,"timeout_ms":1000})";
  EXPECT_THAT(statuses(sees_upgraded(moved, seen)), IsEmpty()) << "a digest is of its path: another one proves nothing";
  EXPECT_THAT(*row.baseline, HasSubstr(digest_value('b')));

  const std::string next_digest = R"({"a":1,"secret":)" + digest_value('c') + R"(,"timeout_ms":1000})";
  EXPECT_THAT(statuses(sees(next_digest)), ElementsAre("auto-applied"));
}

TEST_F(Upgrade, ADigestThatStayedWhereItWasIsStillComparedAfterwards) {
  row.baseline = R"({"a":1,"timeout":"1s","verifier":)" + digest_value('a') + "}";
  new_revision();
  const std::string kept = R"({"a":1,"timeout_ms":1000,"verifier":)" + digest_value('a') + "}";
  const std::string rotated = R"({"a":1,"timeout_ms":1000,"verifier":)" + digest_value('b') + "}";
  EXPECT_THAT(statuses(sees_upgraded(kept, rotated)), ElementsAre("auto-applied"));
}

TEST_F(Upgrade, ABodyThatCannotBeReadIsUnknownAndChangesNothing) {
  new_revision();
  const std::string before = *row.baseline;
  const Judgement judged = sees_upgraded("[]", R"({"a":1,"timeout_ms":1000})");
  EXPECT_THAT(statuses(judged), IsEmpty());
  ASSERT_EQ(judged.unknown.size(), 1u);
  EXPECT_THAT(judged.unknown[0].reason, HasSubstr("is not a JSON object"));
  EXPECT_EQ(row.baseline, before);
}

}  // namespace
}  // namespace driftd::core
