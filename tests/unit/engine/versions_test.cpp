// SPDX-License-Identifier: Apache-2.0
// Kinds whose schema is `versioned`: what reads differently under the same version was written by nobody, unless the
// system gave that version twice, as etcd does after a restore from a backup.
#include "engine/record_versions.hpp"
#include "on_the_store.hpp"

namespace driftd::test {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

class Versions : public EngineOnTheStore {
 protected:
  void SetUp() override {
    line_->world->schemas["thing"] =
        R"({"schema":"driftd-schema/1","kind":"thing","versioned":true,"attributes":{"load":{"volatile":true}}})";
    line_->world->external_name = "uid";
    for (int i = 0; i < 30; ++i) is(i, "100", "3");
  }
  void is(int number, const std::string& version, const std::string& partitions) {
    line_->world->resources[thing(number)] = R"({"partitions":)" + partitions + "}";
    line_->world->versions[thing(number)] = version;
  }
};

TEST_F(Versions, WhatReadsDifferentlyUnderTheSameVersionIsFilledIn) {
  baseline();
  is(1, "100", "4");
  refresh();
  EXPECT_THAT(line_->drifts(), IsEmpty());
  is(2, "101", "4");
  refresh();
  EXPECT_THAT(line_->drifts(), SizeIs(1));
}

TEST_F(Versions, AfterOneWentBackNoStoredVersionIsTrusted) {
  baseline();
  is(1, "90", "4");   // restored: the value of an earlier version
  is(2, "100", "5");  // written since, under a number that came again
  refresh();
  EXPECT_THAT(line_->drifts(), SizeIs(2));
}

TEST_F(Versions, NeitherInAnotherProcessNorInALaterCycle) {
  baseline();
  refresh();
  is(1, "90", "4");
  refresh();
  refresh();
  is(2, "100", "5");
  refresh();
  EXPECT_THAT(line_->drifts(), SizeIs(1)) << "it was read under 100 after the restore: nobody wrote it since";
  restart();
  is(3, "100", "5");
  refresh();
  EXPECT_THAT(line_->drifts(), SizeIs(2)) << "this row is older than the restore";
}

TEST_F(Versions, WhatWasLastSeenUnderAnotherVersionIsAnotherWrite) {
  baseline();
  refresh();
  is(1, "105", "3");  // written back to the same value: the row keeps 100
  refresh();
  is(1, "100", "7");
  refresh();
  EXPECT_THAT(line_->drifts(), SizeIs(1));
}

TEST_F(Versions, ThoseOfAnotherSystemAreNotTrusted) {
  baseline();
  refresh();
  line_->world->identity = "system-2";
  refresh();
  ASSERT_THAT(line_->drifts(), SizeIs(1));
  ASSERT_TRUE(line_->decide(line_->drifts()[0].id, decision(core::Decision::Verb::approve)));
  is(2, "100", "5");
  refresh();
  ASSERT_THAT(line_->drifts(), SizeIs(1));
  EXPECT_EQ(line_->drifts()[0].resource, thing(2));
}

TEST(WentBack, OnlyNumbersOfTheSameResourceHaveAnOrder) {
  core::StoredResource row;
  core::Observation seen;
  row.observed_external_name = seen.external_name = "uid";
  const auto back = [&](const std::string& before, const std::string& now) {
    row.version = before;
    seen.version = now;
    return engine::went_back(row, seen);
  };
  EXPECT_TRUE(back("100", "99"));
  EXPECT_TRUE(back("18446744073709551617", "18446744073709551616"));
  EXPECT_FALSE(back("99", "100"));
  EXPECT_FALSE(back("100", "0100"));
  EXPECT_FALSE(back("100", "abc"));
  EXPECT_FALSE(back("", "1"));
  seen.external_name = "another";
  EXPECT_FALSE(back("100", "99"));
}

}  // namespace
}  // namespace driftd::test
