// SPDX-License-Identifier: Apache-2.0
// A baseline that the store dropped because its row was damaged (store/mend.hpp): nothing is judged against values that
// may be wrong.
#include "unit/judge/resource_fixture.hpp"

namespace driftd::core {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct Forgotten : testing::Test, ResourceFixture {
  Forgotten() {
    context.established = false;
    sees(R"({"a":1,"b":{"c":2},"verifier":)" + digest_value('a') + "}");
    context.established = true;
  }
  /// Writes the row as store/mend.cpp does.
  void forget() {
    row.baseline = row.observed = "{}";
    row.was_unread = {"**"};
    row.external_name = row.observed_external_name = "";
    row.observed_ns = 0;
    row.digest = {};
    row.rules_generation = 0;
  }
  Judgement sees_another() { return sees(R"({"a":7,"b":{"c":8},"verifier":)" + digest_value('b') + "}"); }
};

TEST_F(Forgotten, NextObservationIsTheBaselineWithoutAWord) {
  forget();
  EXPECT_THAT(statuses(sees_another()), IsEmpty());
  EXPECT_EQ(row.baseline, row.observed);
  EXPECT_THAT(row.was_unread, IsEmpty());
}

TEST_F(Forgotten, WhatChangesAfterItIsDrift) {
  forget();
  sees_another();
  EXPECT_THAT(statuses(sees(R"({"a":9,"b":{"c":8},"verifier":)" + digest_value('b') + "}")), ElementsAre("pending"));
}

TEST_F(Forgotten, OpenDriftEndsAsSuperseded) {
  EXPECT_THAT(statuses(sees(R"({"a":5,"b":{"c":2},"verifier":)" + digest_value('a') + "}")), ElementsAre("pending"));
  forget();
  EXPECT_THAT(statuses(sees_another()), ElementsAre("superseded"));
}

TEST_F(Forgotten, ExpectationHoldsAllTheSame) {
  rules.expect.assign(1, expectation("a", "1"));
  forget();
  EXPECT_THAT(statuses(sees_another()), ElementsAre("pending"));
}

}  // namespace
}  // namespace driftd::core
