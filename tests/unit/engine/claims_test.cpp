// SPDX-License-Identifier: Apache-2.0
// Who is trusted about a backend's registration: anybody who may write a label in a cluster can write one.
#include "claims_fixture.hpp"

namespace driftd::test {
namespace {

using core::Decision;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

TEST_F(ClaimsOfSources, AForgedRegistrationOfAConfiguredBackendIsADriftToDecideAndNothingOfItIsTold) {
  line_->start(false);
  tenant("one", 6379);
  look();
  tenant("two", 6666);
  look();
  ASSERT_TRUE(asked());
  const core::Drift drift = claims()[0];
  EXPECT_EQ(render(drift.resource), "claim/b");
  EXPECT_EQ(drift.status, core::DriftStatus::pending);
  EXPECT_EQ(drift.action, core::Action::manual);
  EXPECT_EQ(drift.changes.at(0).path, "claimed_by");
  EXPECT_EQ(drift.changes.at(0).new_value.value_or(""), R"(["source/tenant"])");
  EXPECT_THAT(reasons(),
              HasSubstr("denied: source/tenant reports on backend b, which does not name it in `spoken_by`"));
  EXPECT_THAT(event_types(), ElementsAre("config.updated")) << "the question, neither a rotation nor an endpoint";
}

TEST_F(ClaimsOfSources, WhomTheConfigNamesIsBelievedAndNobodyBesideThem) {
  prepare({{"source", "prod"}});
  line_->start(false);
  own("one", 6379);
  look();
  tenant("evil", 6666);  // listed after the owner's, as if the last report counted
  look();
  own("two", 6379);
  look();
  EXPECT_THAT(event_types(), testing::UnorderedElementsAre("credentials.rotated", "config.updated"));
  ASSERT_TRUE(asked());
  EXPECT_EQ(render(claims()[0].resource), "claim/b");
}

TEST_F(ClaimsOfSources, AnApprovalBelievesTheClaimantAlsoAfterARestart) {
  line_->start(false);
  tenant("one", 6379);
  look();
  ASSERT_TRUE(asked());
  decide(Decision::Verb::approve);
  look();
  tenant("two", 6379);
  look();
  EXPECT_THAT(event_types(), Contains("credentials.rotated"));
  restart();
  look();
  tenant("three", 6379);
  look();
  EXPECT_THAT(reasons(), Not(HasSubstr("denied")));
  EXPECT_EQ(std::ranges::count(event_types(), "credentials.rotated"), 2);
  EXPECT_THAT(line_->drifts(), IsEmpty());
}

TEST_F(ClaimsOfSources, AnApprovalLastsAsLongAsTheClaimIsMade) {
  line_->start(false);
  tenant("one", 6379);
  look();
  ASSERT_TRUE(asked());
  decide(Decision::Verb::approve);
  look();
  silence();
  look();
  look();
  tenant("one", 6379);  // it may be another tenant that got the namespace later
  look();
  EXPECT_TRUE(asked());
}

TEST_F(ClaimsOfSources, ARejectedClaimIsNotAskedAgainAndOneThatIsTakenBackIsOver) {
  line_->start(false);
  tenant("one", 6379);
  look();
  ASSERT_TRUE(asked());
  decide(Decision::Verb::reject);
  const std::size_t before = line_->events().size();
  tenant("two", 6666);
  look();
  EXPECT_EQ(line_->events().size(), before);
  restart();
  look();
  EXPECT_EQ(line_->events().size(), before) << "a restart asks nothing again";
  silence();
  look();
  EXPECT_TRUE(asked(0));
}

TEST_F(ClaimsOfSources, ATenantNeitherTakesBackNorKeepsAliveWhatTheOwnerSaid) {
  prepare({{"source", "prod"}});
  line_->start(false);
  own("one", 6379);
  look();
  tenant("evil", 6666);
  look();
  source().tenants.clear();
  look();
  EXPECT_THAT(event_types(), Not(Contains("deleted")));
  tenant("evil", 6666);
  source().declared.clear();  // the owner's objects are gone, but the tenant's still name the backend
  look();
  look();
  const auto gone = [&] {
    return std::ranges::any_of(line_->drifts(), [](const auto& d) {
      return d.resource.kind == "registration" && d.operation == core::Operation::deleted;
    });
  };
  EXPECT_TRUE(eventually(gone, std::chrono::seconds(10)));
}

TEST_F(ClaimsOfSources, WhoSpokeBeforeTheConfigurationSaidWhoMayIsForgottenWithTheirOpenDrifts) {
  prepare({{"source", ""}});
  line_->start(false);
  own("one", 6379);
  look();
  own("two", 6379);
  look();
  ASSERT_THAT(event_types(), ElementsAre("credentials.rotated"));
  restart();  // without spoken_by
  own("three", 6666);
  look();
  ASSERT_TRUE(asked());
  EXPECT_EQ(render(claims()[0].resource), "claim/b");
  EXPECT_THAT(event_types(), ElementsAre("credentials.rotated", "config.updated"));
}

TEST_F(ClaimsOfSources, AClaimOfASourceThatLeftTheConfigIsOver) {
  line_->start(false);
  tenant("one", 6379);
  look();
  ASSERT_TRUE(asked());
  const ScriptedWorld b = *line_->world;
  line_.reset();
  line_ = std::make_unique<EngineLine>(dir_);
  *line_->world = b;
  line_->start(false);
  EXPECT_TRUE(asked(0));
}

/// A read that still finds an object missing in the list confirms nothing of a registrar that is not trusted any more.
TEST_F(ClaimsOfSources, WhoIsBelievedNoMoreIsNotHeardThroughTheReadThatConfirms) {
  line_->start(false);
  tenant("one", 6379);
  look();
  ASSERT_TRUE(asked());
  decide(Decision::Verb::approve);
  look();
  source().declared_kinds.clear();  // not listed, but a read still finds it
  look();
  tenant("evil", 6666);
  look();
  look();
  EXPECT_TRUE(asked());
  EXPECT_THAT(event_types(), Not(Contains("credentials.rotated")));
  EXPECT_THAT(event_types(), Not(Contains("endpoint.changed")));
}

/// Its record was rejected, so its namespace is unknown.
TEST_F(ClaimsOfSources, AWordWithoutAPlaceKeepsNobodyElsesAlive) {
  prepare({{"source", "prod"}});
  line_->start(false);
  own("one", 6379);
  look();
  source().tenants = {{"b", "", registration_body("x", 1)}};
  source().declared.clear();
  const auto gone = [&] {
    look();
    return std::ranges::any_of(line_->drifts(), [](const auto& d) {
      return d.resource.kind == "registration" && d.operation == core::Operation::deleted;
    });
  };
  EXPECT_TRUE(eventually(gone, std::chrono::seconds(10)));
}

/// An unreadable definition of the same name makes the registration doubtful in its own namespace, but not in another.
TEST_F(ClaimsOfSources, WhatCannotBeReadElsewhereKeepsNoRegistrationFromBeingGone) {
  const auto unread = [](const std::string& place) {
    return core::Diagnostic{Code::invalid, "registration", "b", place, "it has no type", "", 0, "b"};
  };
  const auto is_gone = [&] {
    look();
    return std::ranges::any_of(line_->drifts(), [](const auto& d) {
      return d.resource.kind == "registration" && d.operation == core::Operation::deleted;
    });
  };
  prepare({{"source", "prod"}});
  line_->start(false);
  own("one", 6379);
  look();
  source().declared.clear();
  source().read_diagnostics = {unread("prod")};
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(is_gone()) << "nobody knows";
  source().read_diagnostics = {unread("tenant")};
  EXPECT_TRUE(eventually(is_gone, std::chrono::seconds(10)));
}

TEST_F(ClaimsOfSources, AQuestionThatCouldNotBeStoredIsAskedAgainByTheNextCycle) {
  line_->start(false);
  tamper("CREATE TRIGGER no BEFORE INSERT ON drift BEGIN SELECT RAISE(ABORT, 'no more rows'); END");
  tenant("evil", 6666);
  report_ = line_->refresh(true, "source");
  report_ = line_->refresh(true, "b");
  ASSERT_FALSE(report_.status) << "the cycle says that it could not ask";
  EXPECT_THAT(report_.status.error().message, HasSubstr("no more rows"));
  ASSERT_THAT(claims(), IsEmpty());
  tamper("DROP TRIGGER no");
  report_ = line_->refresh(true, "b");  // its source says nothing new
  EXPECT_TRUE(report_.status);
  EXPECT_THAT(claims(), SizeIs(1));
}

}  // namespace
}  // namespace driftd::test
