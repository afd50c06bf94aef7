// SPDX-License-Identifier: Apache-2.0
// The host counts which budgets a plugin exceeds and which rules it breaks, and a parked plugin can be resumed.
#include <gmock/gmock.h>
#include <filesystem>

#include "contract/host/core_thread.hpp"
#include "support/process.hpp"

namespace driftd::test {
namespace {

namespace fs = std::filesystem;
using core::SessionFactory;
using std::chrono::milliseconds;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

std::string lives(const std::string& version) { return DRIFTD_BINARY_DIR "/tests/lives/" + version + ".so"; }

class Life : public ::testing::Test {
 protected:
  void SetUp() override {
    options_ = host_options(core_);
    options_.plugin_dirs = {DRIFTD_BINARY_DIR "/tests/lives"};
    options_.grace = milliseconds(300);
    options_.restart_first = options_.restart_max = milliseconds(5);
  }
  void TearDown() override {
    if (session_) core_.run(session_->stop());
  }
  core::Session& open(const std::string& mode, core::Budgets budgets = {}) {
    factory_ = host::make_session_factory(options_);
    factory_->on_event([this](core::SessionEvent event) { events_.push_back(event.what + ": " + event.message); });
    core::SessionSpec spec;
    spec.backend = "b";
    spec.provider = lives("v1");
    spec.settings_json = R"({"mode":")" + mode + R"("})";
    spec.budgets = budgets;
    if (kSanitized) spec.budgets.rss_bytes = 0;
    session_ = factory_->open(spec).value();
    return *session_;
  }
  Result<core::RefreshOutcome> refresh(core::Session& session) {
    return core_.run(session.refresh({}, keep(std::make_shared<Pages>())));
  }
  /// Returns why a refresh failed.
  std::string why(core::Session& session) {
    const auto outcome = refresh(session);
    return outcome ? "it did not fail" : outcome.error().message;
  }

  Core core_;
  host::HostOptions options_;
  std::shared_ptr<SessionFactory> factory_;
  std::shared_ptr<core::Session> session_;
  std::vector<std::string> events_;
};

TEST_F(Life, AForeignSecretIsDeniedCountedAndNamed) {
  auto& session = open("steal");
  EXPECT_EQ(refresh(session).error().code, Code::denied);
  EXPECT_EQ(refresh(session).error().code, Code::denied);
  EXPECT_EQ(session.status().denied_secrets, 2u);
  EXPECT_EQ(session.status().misuses.at("secret"), 2u);
  EXPECT_EQ(session.status().last_misuse, "secret: a token that was not minted for this instance (in refresh)");
  EXPECT_THAT(events_, Contains("secret_denied: " + lives("v1") +
                                " asked for a secret that was not minted for it (in refresh); denied, 1 times so far"));
  EXPECT_EQ(std::count_if(events_.begin(), events_.end(), [](const auto& e) { return e.starts_with("secret_denied"); }),
            1)
      << "only the first one is an event; each one is counted";
}

TEST_F(Life, AnEndlessLoopIsKilledAtTheProcessorBudget) {
  core::Budgets budgets;
  budgets.cpu = milliseconds(1000);
  auto& session = open("spin", budgets);
  EXPECT_THAT(why(session), MatchesRegex("worker CPU [0-9.]+ s over the budget of 1 s in refresh"));
  EXPECT_THAT(events_[0], MatchesRegex("budget: CPU [0-9.]+ s over the budget of 1 s in refresh"));
  EXPECT_EQ(session.status().budget_hits.at("cpu"), 1u);
}

TEST_F(Life, AThreadThatGoesOnWhenItsCallEndedMeetsTheProcessorBudget) {
  core::Budgets budgets;
  budgets.cpu = milliseconds(1000);
  auto& session = open("spin_beside", budgets);
  EXPECT_TRUE(refresh(session));
  core_.until([&] { return !events_.empty(); });
  EXPECT_THAT(events_[0], MatchesRegex("budget: CPU [0-9.]+ s over the budget of 1 s while no call ran"));
}

TEST_F(Life, AWorkerOutOfDescriptorsMeetsItsBudgetOfFiles) {
  core::Budgets budgets;
  budgets.files = 64;
  auto& session = open("files", budgets);
  EXPECT_EQ(why(session), "refresh: cannot connect; no descriptor is left (budget files)");
  EXPECT_EQ(session.status().last_failure, "refresh: cannot connect; no descriptor is left (budget files)");
  EXPECT_EQ(session.status().budget_hits.at("files"), 1u);
}

TEST_F(Life, ACallThatTakesAllItsTimeIsABudgetHit) {
  core::Budgets budgets;
  budgets.call = milliseconds(400);
  auto& session = open("wait", budgets);
  ASSERT_TRUE(core_.run(session.health()));
  EXPECT_EQ(refresh(session).error().code, Code::deadline);
  EXPECT_THAT(events_, ElementsAre("budget: no answer within the budget of 400 ms in refresh"));
  EXPECT_EQ(session.status().budget_hits.at("call"), 1u);
}

TEST_F(Life, ABudgetThatIsHitAgainAndAgainIsCountedEachTimeAndToldOnce) {
  core::Budgets budgets;
  budgets.call = milliseconds(400);
  auto& session = open("wait", budgets);
  ASSERT_TRUE(core_.run(session.info()));  // starts the worker: a call that waits for it hits no budget
  for (int i = 0; i < 3; ++i) EXPECT_EQ(refresh(session).error().code, Code::deadline);
  EXPECT_EQ(session.status().budget_hits.at("call"), 3u);
  EXPECT_THAT(events_, ElementsAre("budget: no answer within the budget of 400 ms in refresh"));
}

TEST_F(Life, AListingThatComesNearItsBudgetAndIsCompleteHitsNothing) {
  core::Budgets budgets;
  budgets.records = 1;  // one record is more than nine tenths of it
  auto& session = open("", budgets);
  EXPECT_TRUE(refresh(session));
  EXPECT_THAT(session.status().budget_hits, ::testing::IsEmpty());
}

TEST_F(Life, ManyMetricsHoldUpNoCallAndTheRestIsDropped) {
  auto& session = open("gauges");
  for (int i = 0; i < 2; ++i) EXPECT_EQ(why(session), "it did not fail");
  EXPECT_EQ(session.status().gauges.count("lives"), 1u);
  EXPECT_GT(session.status().misuses.at("metric"), 0u);
  EXPECT_EQ(session.status().restarts, 0u);
}

TEST_F(Life, AParkedWorkerIsFreedAtOnceAndOnlyThen) {
  options_.crashes_to_park = 2;
  auto& session = open("abort");
  EXPECT_THAT(session.resume().error().message, HasSubstr("is not parked"));
  for (int i = 0; i < 2; ++i) EXPECT_THAT(why(session), HasSubstr("signal 6"));
  ASSERT_EQ(session.status().state, "parked");
  EXPECT_EQ(session.status().crashes, 2u);
  EXPECT_GT(session.status().parked_until_ns, SystemClock().wall());
  EXPECT_THAT(why(session), HasSubstr("or at once by `driftd plugin resume b`"));
  EXPECT_TRUE(session.resume());
  core_.until([&] { return session.status().state == "running"; });
  EXPECT_EQ(session.status().crashes, 0u);
  EXPECT_EQ(session.status().parked_until_ns, 0);
}

TEST_F(Life, AScanTellsWhoUsesAFileAndHowItFares) {
  auto& session = open("");
  ASSERT_TRUE(refresh(session));
  const auto found = core_.run(factory_->scan());
  const auto used = std::find_if(found.begin(), found.end(), [](const auto& f) { return f.file == lives("v1"); });
  ASSERT_NE(used, found.end());
  ASSERT_EQ(used->used_by.size(), 1u);
  EXPECT_EQ(used->used_by[0].backend, "b");
  EXPECT_EQ(used->used_by[0].worker.state, "running");
  EXPECT_EQ(used->used_by[0].worker.version, "1.0");
}

}  // namespace
}  // namespace driftd::test
