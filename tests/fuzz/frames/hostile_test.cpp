// SPDX-License-Identifier: Apache-2.0
// A worker that its plugin has taken over breaks one rule of the protocol. The rule is named, the worker is killed, and
// the agent loses nothing.
#include <gmock/gmock.h>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>

#include "fuzz/frames/hostile.hpp"

namespace driftd::test {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

using HostileWorker = Hostile;

Task<Status> held(asio::steady_timer* gate) {
  boost::system::error_code opened;  // ignored: the test cancels the wait
  co_await gate->async_wait(asio::redirect_error(asio::use_awaitable, opened));
  co_return Status{};
}

struct Misbehaviour {
  const char* behaviour;  ///< what the worker does instead of a refresh
  const char* reason;     ///< how the message goes on after "the worker"
};
void PrintTo(const Misbehaviour& broken, std::ostream* out) { *out << broken.behaviour; }

class BrokenRule : public Hostile, public ::testing::WithParamInterface<Misbehaviour> {};

TEST_P(BrokenRule, IsNamedAndTheWorkerKilled) {
  auto& session = open(GetParam().behaviour);
  EXPECT_THAT(why(session), AllOf(HasSubstr("unavailable: worker "), HasSubstr(GetParam().reason)));
  core_.until([&] { return session.status().restarts > 0; });
  EXPECT_THAT(events_, ::testing::Contains(HasSubstr(std::string("misbehaved: ") + GetParam().reason)));
  EXPECT_THAT(session.status().last_exit, HasSubstr(": killed"));
}

constexpr Misbehaviour kRules[] = {
    {"metric_flood", "flooded the metrics"},
    {"unknown_call", "sent a frame of a call that is not running"},
    {"agents_frame", "sent a frame that only the agent sends"},
    {"metric_name", "sent a metric that describe does not declare"},
    {"metric_value", "sent a metric whose value is not a number"},
    {"log_flood", "flooded the log"},
    {"permit_flood", "asked for a permit out of turn"},
    {"permit_buckets", "used more than 256 buckets of permits"},
    {"large_log", "wrote garbage to the protocol"},
    {"id_utf8", "sent a record whose id is not UTF-8"},
    {"id_empty", "sent a record without kind or id"},
    {"id_long", "sent a record whose id has 5000 bytes"},
    {"kind", "sent a record of kind `undeclared`, which describe does not declare"},
    {"metadata_utf8", "sent a record whose metadata is not UTF-8"},
    {"metadata_many", "sent records that cannot be decoded"},
    {"unread_utf8", "sent a record whose unread path is not UTF-8"},
    {"unread_code", "sent records that cannot be decoded"},
    {"no_records", "sent 0 records in one frame"},
    {"many_records", "sent 65 records in one frame"},
    {"mark_kind", "sent a mark for kind `undeclared`, which describe does not declare"},
    {"mark_type", "sent a mark that cannot be decoded"},
    {"cursor", "sent a cursor of 70000 bytes"},
    {"over_budget", "sent more than its budget of 10000 records"},
    {"result_garbage", "sent an answer to refresh that cannot be decoded"},
    {"result_code", "sent an answer to refresh that cannot be decoded"},
    {"many_rules", "sent an answer to refresh that cannot be decoded"},
    {"answer_shape", "sent an invalid answer to refresh"},
};
INSTANTIATE_TEST_SUITE_P(Worker, BrokenRule, ::testing::ValuesIn(kRules),
                         [](const auto& info) { return std::string(info.param.behaviour); });

TEST_F(HostileWorker, OneThatRefusesToOpenAndStaysIsKilledAndTriedAgain) {
  auto& session = open("refuses_open_and_stays");
  core_.until([&] { return session.status().restarts > 1; });
  EXPECT_THAT(events_, ::testing::Contains(HasSubstr("misbehaved: did not return from close within 500 ms")));
  EXPECT_THAT(why(session), HasSubstr("open: not today"));
}

TEST_F(HostileWorker, OneThatRefusesToOpenMayNotSpeakOn) {
  auto& session = open("refuses_open_and_floods");
  core_.until([&] { return session.status().restarts > 1; });
  EXPECT_THAT(events_, ::testing::Contains("misbehaved: sent a frame of a call that is not running"));
}

TEST_F(HostileWorker, RecordsBeyondTheCreditKillIt) {
  auto& session = open("over_credit");
  asio::steady_timer gate(core_.executor(), std::chrono::steady_clock::time_point::max());
  std::optional<Result<core::RefreshOutcome>> outcome;
  core_.start(session.refresh({}, [&](core::RecordPage) { return held(&gate); }), outcome);
  core_.until([&] { return session.status().restarts > 0; });
  EXPECT_THAT(events_, ::testing::Contains("misbehaved: sent more than its credit"));
  gate.expires_at(std::chrono::steady_clock::time_point::min());
  core_.until([&] { return outcome.has_value(); });
  EXPECT_THAT(outcome->error().message, HasSubstr("worker sent more than its credit: killed"));
}

TEST_F(HostileWorker, ARecordBehindTheResultKillsIt) {
  auto& session = open("after_result");
  EXPECT_TRUE(refresh(session));
  core_.until([&] { return session.status().restarts > 0; });
  EXPECT_THAT(events_, ::testing::Contains("misbehaved: sent a frame of a call that is not running"));
}

TEST_F(HostileWorker, AHealthReportOfAnotherShapeKillsIt) {
  auto& session = open("health");
  EXPECT_FALSE(core_.run(session.health()));
  EXPECT_THAT(events_, ::testing::Contains("misbehaved: sent an invalid answer to health"));
}

TEST_F(HostileWorker, ADescribeThatNestsDeepIsRefusedWithoutItsStack) {
  auto& session = open("", "deep.so");
  const auto info = core_.run(session.info());
  ASSERT_FALSE(info);
  EXPECT_THAT(info.error().message, HasSubstr("nesting deeper than 256"));
}

TEST_F(HostileWorker, TheFileOfAPluginIsWhatTheAgentAskedFor) {
  auto& session = open("");
  EXPECT_THAT(core_.run(session.info()).value()->file, HasSubstr("hostile.so"));
}

TEST_F(HostileWorker, ItsNextVisitIsWithinADay) {
  EXPECT_EQ(refresh(open("negative_next")).value().next, milliseconds(0));
  EXPECT_EQ(refresh(open("endless_next")).value().next, std::chrono::hours(24));
}

TEST_F(HostileWorker, WhatItSaysOfItselfIsCutPrintableAndScrubbed) {
  const auto outcome = refresh(open("misuse"));
  ASSERT_FALSE(outcome);
  EXPECT_LE(outcome.error().message.size(), 8192u);
  EXPECT_EQ(outcome.error().retry_after_ms, 86'400'000);
  EXPECT_THAT(events_, ::testing::Contains(AllOf(HasSubstr("broke?it with [REDACTED]"), Not(HasSubstr("\n")))));
}

TEST_F(HostileWorker, ALogLineForgesNoOther) {
  ::testing::internal::CaptureStderr();
  EXPECT_TRUE(refresh(open("log_forges")));
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, AllOf(HasSubstr("first?2026"), HasSubstr("forged [REDACTED]"), Not(HasSubstr("token-value"))));
}

TEST_F(HostileWorker, DiagnosticsWithoutEndAreDroppedAndCounted) {
  const long before = peak_kib();
  std::size_t kept = 0;
  auto& session = open("diagnostics");
  const core::PageHandler count = [&](core::RecordPage page) { return counted(&kept, std::move(page)); };
  const auto outcome = core_.run(session.refresh({false, {}, {}, milliseconds(2000)}, count));
  EXPECT_FALSE(outcome);
  EXPECT_GT(kept, 0u);
  EXPECT_LE(kept, 1001u);
  if (!kSanitized) {
    EXPECT_LT(peak_kib() - before, 48 * 1024);
  }
}

TEST_F(HostileWorker, AFloodTakesNoMemory) {
  const long before = peak_kib();
  for (const char* behaviour :
       {"over_credit", "metric_flood", "log_flood", "permit_flood", "no_records", "large_log"}) {
    EXPECT_THAT(why(open(behaviour)), HasSubstr("killed")) << behaviour;
  }
  if (!kSanitized) {
    EXPECT_LT(peak_kib() - before, 48 * 1024);
  }
}

}  // namespace
}  // namespace driftd::test
