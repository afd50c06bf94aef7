// SPDX-License-Identifier: Apache-2.0
// Lists report how many more rows there are, and a filter that matches nothing is an error.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/admin/fake_agent.hpp"

namespace driftd::test {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

TEST(Lists, DriftsNameTheValueThatADecisionMustName) {
  FakeAgent agent;
  agent.reader()->open = {{pending_drift("d-1"), "cache"}};
  const std::string binding = FakeControl::binding_of("d-1");
  EXPECT_THAT(
      agent.curl({kHost + "/v1/drifts"}).out,
      AllOf(HasSubstr("\"digest\":\"" + binding + "\""), HasSubstr("\"ref\":\"d-1@" + binding.substr(0, 12) + "\"")));
}

TEST(Lists, ADecisionWithoutADigestIsToldWhatToSend) {
  FakeAgent agent;
  for (const char* verb : {"approve", "reject", "ignore"}) {
    for (const char* body : {"", "{}", R"({"digest":""})", R"({"reason":"fine"})"}) {
      EXPECT_THAT(agent.curl({"-d", body, kHost + "/v1/drifts/d-1/" + verb}).out,
                  AllOf(HasSubstr("'digest' is missing: send"), EndsWith("400")));
    }
  }
  EXPECT_TRUE(agent.control()->decisions.empty());
  EXPECT_THAT(agent.curl({"-d", "", kHost + "/v1/drifts/d-1/undo"}).out, EndsWith("200"));
}

TEST(Lists, CutOnesSayHowMuchMoreThereIs) {
  FakeAgent agent;
  agent.reader()->open = {{pending_drift("d-1"), "cache"}, {pending_drift("d-2"), "cache"}};
  agent.reader()->append(4);
  agent.reader()->total = 407;
  for (const char* path : {"/v1/drifts?limit=1", "/v1/resources?limit=1", "/v1/events?after=0&limit=1",
                           "/v1/events?limit=1", "/v1/deadletters?limit=1", "/v1/audit?limit=2"}) {
    EXPECT_THAT(agent.curl({kHost + path}).out, AllOf(HasSubstr("\"total\":407"), HasSubstr("\"truncated\":true")))
        << path;
  }
  EXPECT_THAT(agent.curl({kHost + "/v1/drifts"}).out,
              AllOf(HasSubstr("\"total\":2"), HasSubstr("\"truncated\":false")));
}

TEST(Lists, AFilterThatNamesNothingListsWhatIsKnown) {
  FakeAgent agent;
  const std::pair<const char*, const char*> cases[] = {
      {"/v1/drifts?backend=cahce", "there is no backend 'cahce'; known: cache"},
      {"/v1/drifts?kind=sevrer", "there is no kind 'sevrer'; known: backend, claim, registration, scope, server"},
      {"/v1/drifts?id=nope", "there is no resource with id 'nope'"},
      {"/v1/resources?backend=cahce", "there is no backend 'cahce'"},
      {"/v1/resources?backend=cache&kind=sevrer", "there is no kind 'sevrer'"},
      {"/v1/deadletters?sink=nope", "there is no sink 'nope'; known: ops"},
  };
  for (const auto& [path, expected] : cases) {
    EXPECT_THAT(agent.curl({kHost + path}).out, AllOf(HasSubstr(expected), EndsWith("404"))) << path;
  }
  for (const char* verb : {"replay", "drop"}) {
    EXPECT_THAT(agent.curl({"-d", R"({"sink":"nope"})", kHost + "/v1/deadletters/" + verb}).out,
                AllOf(HasSubstr("there is no sink 'nope'"), EndsWith("404")));
  }
  EXPECT_TRUE(agent.control()->calls.empty());
}

TEST(Lists, AYesOrNoThatIsNeitherIsRefused) {
  FakeAgent agent;
  for (const char* path : {"/v1/drifts?all=1", "/v1/drifts?whole=yes", "/v1/resources?whole=True"}) {
    EXPECT_THAT(agent.curl({kHost + path}).out, AllOf(HasSubstr(": expected true or false, found '"), EndsWith("400")))
        << path;
  }
  for (const char* path : {"/v1/drifts?all=false", "/v1/drifts?whole=true", "/v1/resources?whole="}) {
    EXPECT_THAT(agent.curl({kHost + path}).out, EndsWith("200")) << path;
  }
}

TEST(Lists, AGlobThatBringsNothingIsRemarkedOn) {
  FakeAgent agent;
  EXPECT_THAT(agent.curl({kHost + "/v1/drifts?backend=ord%2A"}).out,
              AllOf(HasSubstr("nothing was found for backend 'ord*'"), EndsWith("200")));
  EXPECT_THAT(agent.curl({kHost + "/v1/drifts"}).out, Not(HasSubstr("nothing was found")));
}

TEST(Lists, ABackendThatWasNotReadYetHasNoUnknownKinds) {
  FakeAgent agent;
  agent.control()->agent.backends[0].coverage.clear();
  EXPECT_THAT(agent.curl({kHost + "/v1/drifts?kind=server"}).out, EndsWith("200"));
}

/// Returns a JSON list of `values` numbers, followed by `last`.
std::string long_list(int values, const std::string& last) {
  std::string out = "[";
  for (int i = 0; i < values; ++i) out += std::to_string(1'000'000 + i) + ",";
  return out + last + "]";
}

TEST(Lists, LargeValuesAreCutAroundTheirDifferenceUnlessTheyAreAskedForWhole) {
  FakeAgent agent;
  core::Drift drift = pending_drift("d-1");
  drift.changes = {{"large", core::ChangeClass::config, long_list(9'000, "41"), long_list(9'000, "42")},
                   {"small", core::ChangeClass::config, "1", "2"}};
  agent.reader()->open = {{drift, "cache"}, {pending_drift("e-2"), "cache"}};
  const std::string brief = agent.curl({kHost + "/v1/drifts"}).out;
  EXPECT_LT(brief.size(), 8'000u);
  EXPECT_THAT(brief, AllOf(HasSubstr("1008999,42]\""), HasSubstr("1008999,41]\""),
                           HasSubstr("\"cut\":[\"old\",\"new\"]"), HasSubstr("\"id\":\"e-2\"")));
  EXPECT_THAT(brief, AllOf(HasSubstr("\"new\":2,"), HasSubstr("\"truncated\":false")));
  for (const char* path : {"/v1/drifts?whole=true", "/v1/drifts?drift=d-1"}) {
    EXPECT_THAT(agent.curl({kHost + path}).out,
                AllOf(HasSubstr("\"new\":" + long_list(9'000, "42")), Not(HasSubstr("\"cut\""))))
        << path;
  }
}

TEST(Lists, ADriftOfManyChangesSaysHowManyItHas) {
  FakeAgent agent;
  core::Drift drift = pending_drift("d-1");
  drift.changes.assign(10'000, {"path", core::ChangeClass::config, "\"" + std::string(200, 'a') + "\"",
                                "\"" + std::string(200, 'b') + "\""});
  agent.reader()->open = {{drift, "cache"}};
  const std::string brief = agent.curl({kHost + "/v1/drifts"}).out;
  EXPECT_LT(brief.size(), 128'000u);
  EXPECT_THAT(brief, HasSubstr("\"changes_total\":10000"));
  EXPECT_THAT(agent.curl({kHost + "/v1/drifts?drift=d-1"}).out, Not(HasSubstr("changes_total")));
}

TEST(Lists, AnAnswerEndsBySizeAndSaysSo) {
  FakeAgent agent;
  core::ResourceRow row;
  row.backend = "cache";
  row.resource.id = {"server", "large"};
  row.resource.observed = "{\"a\":" + long_list(250'000, "1") + "}";  // 2 MB
  agent.reader()->large.assign(20, row);
  agent.reader()->total = 20;
  const std::string whole = agent.curl({kHost + "/v1/resources?whole=true"}).out;
  EXPECT_LT(whole.size(), 17u << 20);
  EXPECT_GT(whole.size(), 10u << 20);
  EXPECT_THAT(whole.substr(whole.size() - 200),
              AllOf(HasSubstr("\"total\":20,\"truncated\":true,\"limited_by\":\"bytes\"}")));
  const std::string brief = agent.curl({kHost + "/v1/resources"}).out;
  EXPECT_LT(brief.size(), 64'000u);
  EXPECT_THAT(brief, AllOf(HasSubstr("\"cut\":[\"observed\"]"), HasSubstr("\"total\":20,\"truncated\":false")));
}

}  // namespace
}  // namespace driftd::test
