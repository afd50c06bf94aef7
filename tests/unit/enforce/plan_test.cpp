// SPDX-License-Identifier: Apache-2.0
#include "core/enforce/plan.hpp"

#include <gmock/gmock.h>

#include "core/value/schema.hpp"

namespace driftd::test {
namespace {

using core::Change;
using core::ChangeClass;
using core::PlanStanding;
using testing::HasSubstr;
using testing::SizeIs;

const char* const kSchema =
    R"({"schema":"driftd-schema/1","kind":"thing","revision":1,"class":"config","title":"t","attributes":{
  "size":{"type":"int"},"keep":{"type":"duration","unit":"ms"},"password":{"type":"string","sensitive":true},
  "uptime":{"type":"int","volatile":true},"sum":{"type":"int","computed":true},
  "token":{"type":"string","write_only":true},"names":{"type":"string","collection":"set"}}})";

std::shared_ptr<const core::KindSchema> schema() {
  auto out = core::KindSchema::parse(kSchema);
  EXPECT_TRUE(out) << out.error().message;
  return out.value_or(core::KindSchema::unknown("thing"));
}

Change change(std::string path, std::optional<std::string> before, std::optional<std::string> now) {
  return {std::move(path), ChangeClass::config, std::move(before), std::move(now), false};
}

core::Drift drift(std::vector<Change> changes) {
  core::Drift out;
  out.id = "d-1";
  out.resource = {"thing", "t1"};
  out.action = core::Action::enforce;
  out.changes = std::move(changes);
  out.digest = core::digest_of(out.changes, out.against);
  return out;
}

core::Observation seen(std::string body) {
  core::Observation out;
  out.id = {"thing", "t1"};
  out.body = std::move(body);
  return out;
}

TEST(EnforcementPlan, IsExactlyTheDriftTurnedAround) {
  const auto plan = core::plan_enforcement(drift({change("keep", "\"1s\"", {}), change("size", "3", "9")}), *schema());
  ASSERT_TRUE(plan) << plan.error().message;
  ASSERT_THAT(*plan, SizeIs(2));
  EXPECT_EQ((*plan)[0], change("keep", {}, "\"1s\""));
  EXPECT_EQ((*plan)[1], change("size", "9", "3"));
}

void refuses(const core::Drift& drift, const std::string& why) {
  const auto plan = core::plan_enforcement(drift, *schema());
  ASSERT_FALSE(plan) << why;
  EXPECT_EQ(plan.error().code, Code::invalid);
  EXPECT_THAT(plan.error().message, HasSubstr(why));
}

TEST(EnforcementPlan, NeverCreatesNorDeletes) {
  for (const auto operation : {core::Operation::created, core::Operation::deleted, core::Operation::recreated}) {
    core::Drift one = drift({change("size", "3", "9")});
    one.operation = operation;
    refuses(one, "neither creates nor deletes");
  }
  refuses(drift({change(std::string(core::kIdentityPath), "\"a\"", "\"b\"")}), "identity");
}

TEST(EnforcementPlan, NeverTouchesASecret) {
  core::Drift rotated = drift({change("size", "3", "9")});
  rotated.cls = ChangeClass::credential;
  refuses(rotated, "credentials are never put back");
  Change mixed = change("size", "3", "9");
  mixed.cls = ChangeClass::credential;
  refuses(drift({mixed}), "credential");
  refuses(drift({change("password", "\"a\"", "\"b\"")}), "credential");
  refuses(drift({change("token", "\"a\"", "\"b\"")}), "credential");
  Change withheld = change("size", "3", "9");
  withheld.redacted = true;
  refuses(drift({withheld}), "withheld");
}

TEST(EnforcementPlan, NeverWritesADigestThatIsInsideAnObject) {
  const std::string digest =
      R"({"$hmac":"00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff","key":"k","norm":1})";
  refuses(drift({change("size", "3", "9"), change("auth", R"({"user":"a","pass":)" + digest + "}", R"({"user":"b"})")}),
          "withheld");
  refuses(drift({change("auth", R"({"user":"a"})", "[{\"deep\":[" + digest + "]}]")}), "withheld");
}

TEST(EnforcementPlan, NeverTouchesWhatTheSystemSetsByItself) {
  refuses(drift({change("uptime", "3", "9")}), "changes by itself");
  refuses(drift({change("sum", "3", "9")}), "computes");
}

TEST(EnforcementPlan, NeedsACurrentReadingAndARealResource) {
  core::Drift stale = drift({change("size", "3", "9")});
  stale.stale_since_ns = 1;
  refuses(stale, "cannot be read since");
  core::Drift own = drift({change("gone", "3", "9")});
  own.resource = {"scope", "thing"};
  refuses(own, "driftd's own registry");
  core::Drift ended = drift({change("size", "3", "9")});
  ended.status = core::DriftStatus::approved;
  refuses(ended, "already approved");
}

TEST(EnforcementStanding, ComparesByTypeAndSaysWhatIsThere) {
  const std::vector<Change> plan{change("keep", "\"2s\"", "\"1s\""), change("size", "9", "3")};
  const auto stands = [&](const std::string& body) { return core::standing_of(plan, seen(body), *schema(), nullptr); };
  EXPECT_EQ(stands(R"({"keep":1000,"size":3,"other":1})").standing, PlanStanding::restored);
  EXPECT_EQ(stands(R"({"keep":"2000ms","size":9})").standing, PlanStanding::found);
  const auto half = stands(R"({"keep":"2s","size":3})");
  EXPECT_EQ(half.standing, PlanStanding::mixed);
  ASSERT_THAT(half.restored, SizeIs(1));
  EXPECT_EQ(half.restored[0].path, "size");
  const auto third = stands(R"({"keep":"5s","size":9})");
  EXPECT_EQ(third.standing, PlanStanding::mixed);
  EXPECT_THAT(third.text, HasSubstr("keep is \"5s\""));
  EXPECT_EQ(stands("[]").standing, PlanStanding::mixed);
}

TEST(EnforcementStanding, AnAbsentValueThatCouldNotBeReadIsNotRestored) {
  const std::vector<Change> plan{change("size", "9", {})};
  core::Observation one = seen("{}");
  EXPECT_EQ(core::standing_of(plan, one, *schema(), nullptr).standing, PlanStanding::restored);
  one.unread.push_back({"size", Code::denied, "no right"});
  EXPECT_EQ(core::standing_of(plan, one, *schema(), nullptr).standing, PlanStanding::mixed);
  one.unread = {{"**", Code::denied, "no right"}};
  EXPECT_EQ(core::standing_of(plan, one, *schema(), nullptr).standing, PlanStanding::mixed);
}

TEST(EnforcementOwner, IsFoundWhereSystemsKeepMarks) {
  core::StoredResource row;
  EXPECT_EQ(core::owner_mark(row), "");
  row.observed = R"({"metadata":{"annotations":{"driftd.io/owner":"west/edge-2"}}})";
  EXPECT_EQ(core::owner_mark(row), "west/edge-2");
  row.observed = R"({"spec":{"labels":{"driftd.io/owner":"nobody"}},"tags":{"driftd.io/owner":"t"}})";
  EXPECT_EQ(core::owner_mark(row), "t");
}

TEST(EnforcementWriter, IsWhatTheRecordTells) {
  core::StoredResource row;
  row.metadata = {{"manager", "kubectl-edit"}, {"operation", "Update"}, {"name", "x"}};
  EXPECT_EQ(core::writer_of(row), "manager kubectl-edit, operation Update");
}

}  // namespace
}  // namespace driftd::test
