// SPDX-License-Identifier: Apache-2.0
// Enforcement over the API: what is held, what was done, and what a person asks for.
#include <gmock/gmock.h>

#include "unit/admin/fake_agent.hpp"

namespace driftd::test {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::SizeIs;
using testing::StartsWith;

TEST(EnforceApi, ADriftIsPutBackByItsDigest) {
  FakeAgent agent;
  const Output missing = agent.curl({"-d", "{}", kHost + std::string("/v1/drifts/d-1/enforce")});
  EXPECT_THAT(missing.out, AllOf(HasSubstr("'digest' is missing"), EndsWith("400")));
  const Output done =
      agent.curl({"-d", R"({"digest":"abcdefab","dry_run":true})", kHost + std::string("/v1/drifts/d-1/enforce")});
  EXPECT_THAT(done.out, AllOf(HasSubstr("CONFIG SET a b"), HasSubstr(R"("state":"planned")"), EndsWith("200")));
  EXPECT_THAT(agent.control()->calls, Contains(StartsWith("enforce d-1@abcdefab dry ")));
  ASSERT_THAT(agent.control()->lines, SizeIs(2)) << "what is done is audited with the operation, and here is none";
  EXPECT_EQ(agent.control()->lines[1].verb, "enforce dry run");
  EXPECT_EQ(agent.control()->lines[1].subject, "d-1");
  EXPECT_EQ(agent.control()->lines[1].outcome, "");
  EXPECT_EQ(agent.control()->lines[0].verb, "enforce");
  EXPECT_THAT(agent.control()->lines[0].outcome, HasSubstr("invalid"));
}

TEST(EnforceApi, TheSwitchAndTheStopsArePassedOnWithTheirReason) {
  FakeAgent agent;
  EXPECT_THAT(agent.curl({"-d", R"({"reason":"incident"})", kHost + std::string("/v1/enforce/off")}).out,
              EndsWith("200"));
  EXPECT_THAT(agent.curl({"-d", "", kHost + std::string("/v1/enforce/on")}).out, EndsWith("200"));
  EXPECT_THAT(agent.curl({"-d", "", kHost + std::string("/v1/drifts/d-7/resume")}).out, EndsWith("200"));
  EXPECT_THAT(agent.curl({"-d", "", kHost + std::string("/v1/enforce/maybe")}).out, EndsWith("404"));
  EXPECT_THAT(agent.control()->calls, ElementsAre(AllOf(StartsWith("off "), EndsWith(": incident")), StartsWith("on "),
                                                  StartsWith("lift d-7 ")));
}

TEST(EnforceApi, SaysWhatIsHeldAndSoDoTheMetrics) {
  FakeAgent agent;
  core::EnforcementView::Backend backend;
  backend.name = "cache";
  backend.held["d-1"] = {core::HoldReason::window, "no maintenance window is open", 1'000'000'000};
  backend.ended["done"] = 4;
  agent.control()->enforcing.off = "switched off by kim";
  agent.control()->enforcing.backends.push_back(backend);
  const std::string status = agent.curl({kHost + std::string("/v1/enforce")}).out;
  EXPECT_THAT(status, AllOf(HasSubstr("switched off by kim"), HasSubstr(R"("reason":"window")"),
                            HasSubstr("1970-01-01T00:00:01.000Z"), HasSubstr(R"("done":4)")));
}

TEST(EnforceApi, AnExplanationSaysWhatHoldsTheResourceAndNoOther) {
  FakeAgent agent;
  core::EnforcementView::Backend backend;
  backend.name = "cache";
  backend.held["d-1"] = {core::HoldReason::window, "no maintenance window is open", {}, {"acl_user", "app"}};
  backend.held["d-2"] = {core::HoldReason::refused, "of another resource", {}, {"acl_user", "other"}};
  agent.control()->enforcing.backends.push_back(backend);
  const auto explained = [&](const char* body) {
    return agent.curl({"-d", body, kHost + std::string("/v1/explain")}).out;
  };
  const std::string app = explained(R"({"backend":"cache","resource":"acl_user/app"})");
  EXPECT_THAT(app, AllOf(HasSubstr(R"("drift":"d-1")"), HasSubstr("no maintenance window is open")));
  EXPECT_THAT(app, testing::Not(HasSubstr("d-2")));
  EXPECT_THAT(explained(R"({"backend":"bus","resource":"acl_user/app"})"), HasSubstr(R"("held":[])"));
}

TEST(EnforceApi, ListsOperationsByFilter) {
  FakeAgent agent;
  core::Enforcement one;
  one.id = "op-1";
  one.changes = {{"a", core::ChangeClass::config, "1", "2", false}};
  one.desired = R"({"a":2})";
  agent.reader()->operations = {one};
  const std::string listed = agent.curl({kHost + std::string("/v1/operations?backend=cache&state=done&limit=7")}).out;
  EXPECT_THAT(listed, AllOf(HasSubstr(R"("found":1)"), HasSubstr(R"("put_back":2)"), HasSubstr(R"("desired":{"a":2})"),
                            EndsWith("200")));
  EXPECT_EQ(agent.reader()->last_operations.backend, "cache");
  EXPECT_EQ(agent.reader()->last_operations.state, "done");
  EXPECT_EQ(agent.reader()->last_operations.limit, 7);
  EXPECT_THAT(agent.curl({kHost + std::string("/v1/operations?state=half")}).out, EndsWith("400"));
}

}  // namespace
}  // namespace driftd::test
