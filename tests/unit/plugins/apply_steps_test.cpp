// SPDX-License-Identifier: Apache-2.0
// Commands in order, the way back, what was judged, and idempotency keys.
#include "common/apply_steps.hpp"

#include <gmock/gmock.h>

namespace driftd::common {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// A system of three commands, of which one may fail, and one way back.
class CarryOut : public testing::Test {
 protected:
  Step step(const std::string& name) {
    return {"SET " + name, "UNSET " + name, {name}, [this, name] { run(name); }, [this, name] { run("-" + name); }};
  }
  void run(const std::string& name) {
    ran_.push_back(name);
    const auto found = failures_.find(name);
    if (found != failures_.end()) throw sdk::Failure(found->second, "no " + name, {}, "right to " + name);
  }
  sdk::Applied all() {
    std::vector<Step> steps{
        step("a"), step("b"), {.command = "RELOAD", .run = [this] { run("reload"); }, .seals = true}};
    return carry_out(steps, [this] { return ran_.size() >= cancelled_after_; });
  }
  std::map<std::string, driftd_status> failures_;
  std::vector<std::string> ran_;
  std::size_t cancelled_after_ = 100;
};

TEST_F(CarryOut, RunsThemInOrderAndSaysHowToTakeThemBack) {
  const auto out = all();
  EXPECT_EQ(out.outcome, unsigned{DRIFTD_APPLY_SUCCESS});
  EXPECT_TRUE(out.changed);
  EXPECT_THAT(ran_, ElementsAre("a", "b", "reload"));
  EXPECT_THAT(out.commands, ElementsAre("SET a", "SET b", "RELOAD"));
  EXPECT_THAT(out.undo, ElementsAre("UNSET b", "UNSET a", "RELOAD"));
}

TEST_F(CarryOut, TakesTheFirstBackIfTheSecondFails) {
  failures_["b"] = DRIFTD_DENIED;
  const auto out = all();
  EXPECT_EQ(out.outcome, unsigned{DRIFTD_APPLY_FAILED});
  EXPECT_FALSE(out.changed);
  EXPECT_THAT(ran_, ElementsAre("a", "b", "-a"));
  EXPECT_EQ(out.text, "SET b: no b; grant right to b; what was changed before was taken back");
  EXPECT_THAT(out.left, IsEmpty());
}

TEST_F(CarryOut, NamesWhatCouldNotBeTakenBack) {
  failures_["reload"] = DRIFTD_CORRUPT;
  failures_["-a"] = DRIFTD_CORRUPT;
  const auto out = all();
  EXPECT_EQ(out.outcome, unsigned{DRIFTD_APPLY_FAILED});
  EXPECT_TRUE(out.changed);
  EXPECT_THAT(ran_, ElementsAre("a", "b", "reload", "-b", "-a"));
  EXPECT_THAT(out.left, ElementsAre("a"));
  EXPECT_THAT(out.text, HasSubstr("UNSET a failed: no -a"));
}

TEST_F(CarryOut, TakesAlsoBackWhatMayHaveRun) {
  failures_["b"] = DRIFTD_UNAVAILABLE;
  (void)all();
  EXPECT_THAT(ran_, ElementsAre("a", "b", "-b", "-a"));
}

TEST_F(CarryOut, ThrowsIfNobodyKnowsWhetherTheFirstRan) {
  failures_["a"] = DRIFTD_UNAVAILABLE;
  EXPECT_THROW(all(), sdk::Failure);
  EXPECT_THAT(ran_, ElementsAre("a"));
}

TEST_F(CarryOut, OfTheFirstThatIsRefusedNothingIsTakenBack) {
  failures_["a"] = DRIFTD_CORRUPT;
  const auto out = all();
  EXPECT_THAT(ran_, ElementsAre("a"));
  EXPECT_THAT(out.text, HasSubstr("nothing was changed"));
}

TEST_F(CarryOut, ACancelledCallRunsNothingMore) {
  cancelled_after_ = 1;
  const auto out = all();
  EXPECT_EQ(out.outcome, unsigned{DRIFTD_APPLY_FAILED});
  EXPECT_THAT(ran_, ElementsAre("a", "-b", "-a")) << "to take back what did not run changes nothing";
}

sdk::Record record(const std::string& body) {
  sdk::Record out;
  out.body = body;
  out.version = "v2";
  return out;
}
bool unordered(const std::string& path) { return path == "set"; }

TEST(CompareJudged, ConflictNamesTheAttributeThatMoved) {
  const sdk::Apply request{true, {"k", "i"}, "", "key", {{0, "a.b", "1", "2"}, {1, "set", "[1,2]", "[]"}}};
  EXPECT_FALSE(compare_judged(record(R"({"a":{"b":1},"set":[2,1]})"), request, unordered));
  const auto there = compare_judged(record(R"({"a":{"b":2},"set":[]})"), request, unordered);
  ASSERT_TRUE(there);
  EXPECT_FALSE(there->changed);
  for (const char* body : {R"({"a":{"b":3},"set":[2,1]})", R"({"a":{"b":2},"set":[2,1]})", R"({"set":[2,1]})", "{}"}) {
    try {
      (void)compare_judged(record(body), request, unordered);
      ADD_FAILURE() << body;
    } catch (const sdk::Failure& why) {
      EXPECT_EQ(why.code, DRIFTD_CONFLICT);
      EXPECT_THAT(why.what(), HasSubstr("a.b changed since"));
    }
  }
}

TEST(CompareJudged, AnAbsentAttributeIsNullOrMissing) {
  const sdk::Apply request{true, {"k", "i"}, "", "key", {{0, "a", "", "\"x\""}}};
  EXPECT_FALSE(compare_judged(record("{}"), request, unordered));
  EXPECT_FALSE(compare_judged(record(R"({"a":null})"), request, unordered));
  EXPECT_THROW(compare_judged(record(R"({"a":""})"), request, unordered), sdk::Failure);
}

TEST(CompareJudged, AnotherVersionIsAConflict) {
  const sdk::Apply request{true, {"k", "i"}, "v1", "key", {{0, "a", "1", "2"}}};
  EXPECT_THROW(compare_judged(record(R"({"a":1})"), request, unordered), sdk::Failure);
}

TEST(AppliedRequests, OneKeyIsOneChange) {
  AppliedRequests keys;
  sdk::Apply request{false, {"k", "i"}, "", "key", {{0, "a", "1", "2"}}};
  EXPECT_FALSE(keys.find(request));
  sdk::Applied outcome;
  outcome.changed = true;
  outcome.commands = {"SET a"};
  keys.remember(request, outcome);
  EXPECT_FALSE(keys.find(request)->changed);
  EXPECT_THAT(keys.find(request)->commands, ElementsAre("SET a"));
  request.changes[0].new_value = "3";
  EXPECT_THROW(keys.find(request), sdk::Failure);
}

TEST(AppliedRequests, TheLastThousandAreKnown) {
  AppliedRequests keys;
  sdk::Apply request{false, {"k", "i"}, "", "", {{0, "a", "1", "2"}}};
  for (int i = 0; i < 2000; ++i) {
    request.key = std::to_string(i);
    keys.remember(request, {});
  }
  request.key = "1000";
  EXPECT_TRUE(keys.find(request));
  request.key = "0";
  EXPECT_FALSE(keys.find(request));
}

}  // namespace
}  // namespace driftd::common
