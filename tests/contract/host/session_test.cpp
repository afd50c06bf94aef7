// SPDX-License-Identifier: Apache-2.0
// One suite for both isolations: a session behaves the same in a worker and in-process.
#include <gmock/gmock.h>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <nlohmann/json.hpp>
#include <set>

#include "contract/host/session_fixture.hpp"

namespace driftd::test {
namespace {

using core::SessionSpec;
using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_P(SessionContract, InfoTellsWhatThePluginDescribes) {
  const auto info = core_.run(open({}).info());
  ASSERT_TRUE(info) << info.error().message;
  EXPECT_EQ((*info)->id, "tester");
  EXPECT_THAT((*info)->types, ElementsAre("tester", "test-thing"));
  EXPECT_TRUE((*info)->has_watch);
  EXPECT_EQ((*info)->schemas.at("thing")->kind(), "thing");
}

TEST_P(SessionContract, RefreshHandsOnRecordsThenTheCompleteMark) {
  auto& session = open({{"count", 3}, {"secret", "token-1"}});
  const auto outcome = refresh(session);
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_EQ(outcome->next, milliseconds(7000));
  ASSERT_EQ(pages_->records(), 3u);
  const auto& record = pages_->all[0].records[1];
  EXPECT_EQ(core::render(record.id), "thing/1");
  EXPECT_EQ(record.external_name, "uuid-1");
  EXPECT_EQ(record.unread.at(0).path, "owner");
  EXPECT_EQ(record.status, R"({"seen":true})");
  EXPECT_GT(record.observed_ns, 1'600'000'000'000'000'000);
  ASSERT_EQ(pages_->marks().size(), 1u);
  EXPECT_EQ(pages_->marks()[0].type, core::Mark::Type::complete);
  EXPECT_EQ(pages_->marks()[0].count, 3u);
  EXPECT_EQ(session.status().gauges.at("things"), 3.0);
}

TEST_P(SessionContract, SameRecordsGiveSameDigestsAndOthersDoNot) {
  auto& session = open({{"count", 2}, {"secret", "token-1"}});
  ASSERT_TRUE(refresh(session));
  const auto first = pages_->all[0].records;
  ASSERT_TRUE(refresh(session));
  EXPECT_EQ(first[0].digest, pages_->all[0].records[0].digest);
  EXPECT_FALSE(first[0].digest == first[1].digest);
}

TEST_P(SessionContract, UnchangedAndExpiredCursorsAreToldApart) {
  auto& session = open({});
  const auto unchanged = refresh(session, {false, "unchanged", {}, {}});
  ASSERT_TRUE(unchanged) << unchanged.error().message;
  EXPECT_TRUE(unchanged->unchanged);
  EXPECT_EQ(pages_->records(), 0u);
  EXPECT_EQ(refresh(session, {false, "expired", {}, {}}).error().code, Code::cursor_expired);
}

TEST_P(SessionContract, AHundredThousandRecordsArriveInOrderInBoundedPages) {
  auto& session = open({{"count", 100'000}});
  const auto outcome = refresh(session);
  ASSERT_TRUE(outcome) << outcome.error().message;
  ASSERT_EQ(pages_->records(), 100'000u);
  std::size_t next = 0;
  for (const auto& page : pages_->all) {
    EXPECT_LE(page.records.size(), 512u);
    EXPECT_LE(page.marks.size(), 1u);
    for (const auto& record : page.records) ASSERT_EQ(record.id.id, std::to_string(next++));
  }
  EXPECT_EQ(pages_->marks().size(), 101u);
}

/// Keeps the page and returns only when `gate` is cancelled.
Task<Status> hold(std::shared_ptr<Pages> to, asio::steady_timer* gate, core::RecordPage page) {
  to->all.push_back(std::move(page));
  boost::system::error_code opened;
  co_await gate->async_wait(asio::redirect_error(asio::use_awaitable, opened));
  co_return Status{};
}

TEST_P(SessionContract, ASlowPageHandlerHoldsTheProviderBackAndHealthStillAnswers) {
  auto& session = open({{"count", 2000}, {"padding", 10'000}});
  asio::steady_timer gate(core_.executor(), std::chrono::steady_clock::time_point::max());
  std::optional<Result<core::RefreshOutcome>> outcome;
  core_.start(session.refresh({}, [&](core::RecordPage page) { return hold(pages_, &gate, std::move(page)); }),
              outcome);
  core_.until([&] { return pages_->all.size() == 1; });
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(core_.run(session.health()));
  EXPECT_EQ(pages_->all.size(), 1u);
  EXPECT_FALSE(outcome);
  core_.until([&] { return gate.cancel(), outcome.has_value(); });
  EXPECT_TRUE(*outcome);
  EXPECT_EQ(pages_->records(), 2000u);
}

Task<Status> refuse_page(core::RecordPage) { co_return fail(Code::conflict, "the store refused the page"); }

TEST_P(SessionContract, AnErrorOfThePageHandlerEndsTheCallWithThatError) {
  auto& session = open({{"count", 50'000}});
  const auto outcome =
      core_.run(session.refresh({}, [](core::RecordPage page) { return refuse_page(std::move(page)); }));
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().message, "the store refused the page");
  EXPECT_TRUE(refresh(session)) << "the session can still be used";
}

TEST_P(SessionContract, ReadSortsFoundGoneAndUnknown) {
  auto& session = open({{"count", 3}});
  const auto outcome =
      core_.run(session.read({{"thing", "1"}, {"thing", "99"}, {"thing", "denied"}}, milliseconds(5000)));
  ASSERT_TRUE(outcome) << outcome.error().message;
  ASSERT_EQ(outcome->found.size(), 1u);
  EXPECT_EQ(outcome->found[0].id.id, "1");
  EXPECT_THAT(outcome->not_found, ElementsAre(core::ResourceId{"thing", "99"}));
  ASSERT_EQ(outcome->diagnostics.size(), 1u);
  EXPECT_EQ(outcome->diagnostics[0].right, "+thing|get");
}

TEST_P(SessionContract, HealthReportsAllItsFields) {
  const auto report = core_.run(open({}).health());
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->state, core::HealthReport::State::up);
  EXPECT_EQ(report->latency_us, 42);
  EXPECT_EQ(report->role, "primary");
  EXPECT_EQ(report->system_identity, "id-1");
  EXPECT_EQ(report->server_version, "9.9");
}

TEST_P(SessionContract, HealthAnswersWhileARefreshIsBlocked) {
  auto& session = open({{"mode", "block"}});
  std::optional<Result<core::RefreshOutcome>> outcome;
  core_.start(session.refresh({false, {}, {}, milliseconds(20'000)}, keep(pages_)), outcome);
  const auto report = core_.run(session.health(), std::chrono::seconds(10));
  EXPECT_TRUE(report);
  EXPECT_FALSE(outcome);
  core_.run(session.stop());
  core_.until([&] { return outcome.has_value(); });
  EXPECT_EQ(outcome->error().code, Code::cancelled);
}

TEST_P(SessionContract, ADeadlineCancelsTheCallAndTheSessionGoesOn) {
  auto& session = open({{"mode", "block"}});
  ASSERT_TRUE(core_.run(session.info()));
  const auto outcome = refresh(session, {false, {}, {}, milliseconds(100)});
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, Code::deadline) << outcome.error().message;
  EXPECT_TRUE(core_.run(session.health()));
  EXPECT_EQ(session.status().restarts, 0u);
}

TEST_P(SessionContract, ADeadlineThatTheAgentSeesLateStillGivesTheWorkerItsGrace) {
  auto& session = open({{"mode", "block"}});
  ASSERT_TRUE(core_.run(session.info()));
  std::optional<Result<core::RefreshOutcome>> outcome;
  core_.start(session.refresh({false, {}, {}, milliseconds(100)}, keep(pages_)), outcome);
  // later than the deadline and the grace of 300 ms
  const auto until = std::chrono::steady_clock::now() + milliseconds(500);
  asio::post(core_.executor(), [until] {
    while (std::chrono::steady_clock::now() < until) {  // blocks the core thread, as if the machine had stood still
    }
  });
  core_.until([&] { return outcome.has_value(); });
  EXPECT_EQ(outcome->error().code, Code::deadline) << outcome->error().message;
  EXPECT_TRUE(core_.run(session.health()));
  EXPECT_EQ(session.status().restarts, 0u);
}

TEST_P(SessionContract, AProviderThatIgnoresTheCancelIsCutOffAndStartedAgain) {
  auto& session = open({{"mode", "block"}, {"deaf", true}});
  ASSERT_TRUE(core_.run(session.info()));
  const auto outcome = refresh(session, {false, {}, {}, milliseconds(100)});
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, Code::unavailable);
  EXPECT_THAT(outcome.error().message, ::testing::MatchesRegex("worker no answer within [0-9]+ ms: killed in refresh"));
  core_.until([&] { return session.status().restarts == 1; });
  EXPECT_TRUE(core_.run(session.info()));
  core_.until([&] { return core_.run(session.health()).has_value(); });
  EXPECT_THAT(events_, ElementsAre("crashed: " + session.status().last_exit));
}

TEST_P(SessionContract, WatchStreamsUntilTheSessionStops) {
  auto& session = open({});
  std::optional<Status> ended;
  core_.start(session.watch("", keep(pages_)), ended);
  core_.until([&] { return pages_->marks().size() == 2; });
  EXPECT_EQ(pages_->records(), 2u);
  EXPECT_TRUE(pages_->all[0].records.back().tombstone || pages_->all[1].records.back().tombstone);
  EXPECT_EQ(pages_->marks()[0].cursor, "w-1");
  EXPECT_FALSE(ended);
  core_.run(session.stop());
  core_.until([&] { return ended.has_value(); });
}

TEST_P(SessionContract, AnExpiredWatchCursorIsToldAsSuch) {
  auto& session = open({});
  EXPECT_EQ(core_.run(session.watch("expired", keep(pages_))).error().code, Code::cursor_expired);
}

TEST_P(SessionContract, FailuresOfThePluginKeepCodeReasonRightAndRetryTime) {
  auto& denied = open({{"mode", "denied"}});
  const auto refused = refresh(denied);
  EXPECT_EQ(refused.error().code, Code::denied);
  EXPECT_EQ(refused.error().message, "refresh: may not list");
  ASSERT_EQ(pages_->all.size(), 1u);
  EXPECT_EQ(pages_->all[0].diagnostics.at(0).right, "+thing|list");
  core_.run(denied.stop());
  const auto later = refresh(open({{"mode", "throttled"}}));
  EXPECT_EQ(later.error().code, Code::throttled);
  EXPECT_EQ(later.error().retry_after_ms, 1234);
}

TEST_P(SessionContract, AnOpenThatFailsIsToldToEveryCallWithItsReason) {
  auto& session = open({{"fail_open", true}});
  const auto outcome = refresh(session);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, Code::invalid);
  EXPECT_THAT(outcome.error().message, HasSubstr("settings.fail_open is set"));
  const auto health = core_.run(session.health());
  ASSERT_FALSE(health);
  EXPECT_THAT(health.error().message, HasSubstr("settings.fail_open is set"));
  const auto read = core_.run(session.read({{"thing", "1"}}, milliseconds(5000)));
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().message, HasSubstr("settings.fail_open is set"));
}

/// The ABI promises this to the plugin (driftd_open_args.settings). Only `driftd validate` and a hot upgrade did it.
TEST_P(SessionContract, SettingsThatThePluginsSchemaRefusesAreNotGivenToThePlugin) {
  auto& session = open({{"count", "three"}, {"fail_open", true}});
  const auto outcome = refresh(session);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, Code::invalid);
  EXPECT_EQ(outcome.error().message, "settings.count: expected integer, found string");
  EXPECT_TRUE(core_.run(session.info())) << "what the plugin says about itself is known all the same";
}

TEST_P(SessionContract, OnlyTokensOfTheInstanceResolve) {
  const auto outcome = refresh(open({{"steal", "token-of-another"}}));
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, Code::denied) << outcome.error().message;
}

TEST_P(SessionContract, ACanarySecretIsInNoRecordDiagnosticErrorOrEvent) {
  auto& session = open({{"secret", "token-1"}, {"mode", "leaky"}});
  const auto outcome = refresh(session);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, Code::unauthenticated);
  EXPECT_EQ(outcome.error().message, "refresh: login with [REDACTED] failed");
  EXPECT_EQ(pages_->records(), 1u);
  EXPECT_THAT(everything(), Not(HasSubstr("canary-7f3a9b")));
  EXPECT_THAT(everything(), HasSubstr("url with [REDACTED]"));
}

TEST_P(SessionContract, ASensitiveAttributeIsADigestBeforeItLeavesTheWorker) {
  auto& session = open({{"secret", "token-1"}, {"count", 1}});
  ASSERT_TRUE(refresh(session));
  EXPECT_THAT(pages_->all[0].records[0].body, HasSubstr("0a0b0c0d:"));
  EXPECT_THAT(everything(), Not(HasSubstr("canary-7f3a9b")));
}

TEST_P(SessionContract, AnExceptionOfThePluginIsInternalAndScrubbed) {
  auto& session = open({{"secret", "token-1"}, {"mode", "throw"}});
  const auto outcome = refresh(session);
  EXPECT_EQ(outcome.error().code, Code::internal);
  EXPECT_EQ(outcome.error().message, "refresh: thrown with [REDACTED]");
}

TEST_P(SessionContract, JunkHandlesAndBadRecordsAreRefusedAndTold) {
  auto& session = open({{"mode", "stale"}});
  const auto outcome = refresh(session);
  EXPECT_TRUE(outcome) << outcome.error().message;
  ASSERT_EQ(events_.size(), 1u);
  EXPECT_THAT(events_[0], HasSubstr("broke a rule of the ABI 5 times in refresh"));
}

TEST_P(SessionContract, PermitsAreGrantedAtTheHostsRate) {
  auto& session = open({{"mode", "permits"}});
  const auto began = std::chrono::steady_clock::now();
  const auto outcome = refresh(session);
  EXPECT_TRUE(outcome) << outcome.error().message;
  EXPECT_GE(std::chrono::steady_clock::now() - began, milliseconds(150))
      << "110 permits: 100 at once, 10 at 50 a second";
}

TEST_P(SessionContract, ABudgetOfRecordsEndsTheRefreshWithoutACompleteMarkAndIsTold) {
  core::Budgets budgets;
  budgets.records = 1500;
  auto& session = open({{"count", 5000}}, budgets);
  const auto outcome = refresh(session);
  EXPECT_TRUE(outcome) << outcome.error().message;
  EXPECT_GE(pages_->records(), 1350u);
  EXPECT_LE(pages_->records(), 1500u);
  for (const auto& mark : pages_->marks()) EXPECT_NE(mark.type, core::Mark::Type::complete);
  EXPECT_THAT(events_, ElementsAre("budget: refresh: at the budget of 1500 records or 1073741824 bytes a refresh"));
}

TEST_P(SessionContract, TheProvidersDiffDemotesWhatItKnowsAndNeverSeesACredential) {
  auto& session = open({});
  const core::Change size{"size", core::ChangeClass::config, "1", "2", false};
  const core::Change padding{"padding", core::ChangeClass::config, "\"x\"", "\"y\"", false};
  const core::Change secret{"padding", core::ChangeClass::credential, "\"x\"", "\"y\"", true};
  const auto demoted = core_.run(session.demote({"thing", "1"}, {size, secret, padding}));
  ASSERT_TRUE(demoted) << demoted.error().message;
  ASSERT_EQ(demoted->size(), 1u);
  EXPECT_EQ(demoted->at(0).index, 2u);
  EXPECT_FALSE(demoted->at(0).unsettled);
  EXPECT_EQ(demoted->at(0).reason, "padding of 1");
}

/// The answer would be an error, and each of the resource's changes unsettled for ever.
TEST_P(SessionContract, TheProvidersDiffIsNotAskedAboutMoreThanOneRequestHolds) {
  auto& session = open({});
  const std::string half(5u << 20, 'x');
  const core::Change large{"padding", core::ChangeClass::config, "\"" + half + "\"", "\"y" + half + "\"", false};
  const core::Change padding{"padding", core::ChangeClass::config, "\"x\"", "\"y\"", false};
  const auto demoted = core_.run(session.demote({"thing", "1"}, {large, padding}));
  ASSERT_TRUE(demoted) << demoted.error().message;
  ASSERT_EQ(demoted->size(), 1u);
  EXPECT_EQ(demoted->at(0).index, 1u);
}

TEST_P(SessionContract, StopIsIdempotentAndLaterCallsAnswerCancelled) {
  auto& session = open({});
  ASSERT_TRUE(core_.run(session.info()));
  core_.run(session.stop());
  core_.run(session.stop());
  EXPECT_EQ(session.status().state, "stopped");
  EXPECT_EQ(core_.run(session.health()).error().code, Code::cancelled);
}

INSTANTIATE_TEST_SUITE_P(Isolation, SessionContract,
                         ::testing::Values(SessionSpec::Isolation::process, SessionSpec::Isolation::in_process),
                         [](const auto& param) {
                           return param.param == SessionSpec::Isolation::process ? "Process" : "InProcess";
                         });

}  // namespace
}  // namespace driftd::test
