// SPDX-License-Identifier: Apache-2.0
#include "host/worker_reports.hpp"

#include <gmock/gmock.h>
#include <boost/asio/io_context.hpp>
#include <vector>

namespace driftd::host {
namespace {

using testing::ElementsAre;

class WorkerReportsTest : public testing::Test {
 protected:
  WorkerReportsTest() {
    spec_.session.backend = "cache";
    spec_.file = "/plugins/cache.so";
  }
  core::WorkerStatus status() const {
    core::WorkerStatus out;
    reports_.add_to(out);
    return out;
  }
  void record(const ipc::CallResult& result) {
    const Call refresh(context_.get_executor(), 1, ipc::FrameType::refresh, Steady::time_point::max());
    reports_.record_result(refresh, result);
  }

  asio::io_context context_;
  SupervisorSpec spec_;
  std::vector<std::string> events_;
  WorkerReports reports_{spec_, [this](core::SessionEvent event) {
                           events_.push_back(event.backend + " " + event.what + ": " + event.message);
                         }};
};

TEST_F(WorkerReportsTest, OnlyAServingWorkerMakesEvents) {
  for (const auto role : {WorkerRole::scan, WorkerRole::trial, WorkerRole::serving, WorkerRole::retired}) {
    spec_.role = role;
    reports_.record_misbehaviour("flooded the log");
  }
  EXPECT_THAT(events_, ElementsAre("cache misbehaved: flooded the log"));
  EXPECT_EQ(status().misuses.at("protocol"), 4u);
  EXPECT_EQ(status().last_misuse, "flooded the log");
}

TEST_F(WorkerReportsTest, ABudgetIsReportedOnceInTenMinutesAndCountedEachTime) {
  for (int i = 0; i < 3; ++i) reports_.record_budget_hit("cpu", "CPU 2 s over the budget of 1 s");
  reports_.record_budget_hit("rss", "RSS 2 MiB over the budget of 1 MiB");
  EXPECT_THAT(events_, ElementsAre("cache budget: CPU 2 s over the budget of 1 s",
                                   "cache budget: RSS 2 MiB over the budget of 1 MiB"));
  EXPECT_EQ(status().budget_hits.at("cpu"), 3u);
}

TEST_F(WorkerReportsTest, MisusesAreCountedByFunctionAndReportedWithTheCall) {
  ipc::CallResult result;
  result.misuses = 2;
  result.misuse = "emit: passed no kind";
  result.rules = {{"emit", 2}};
  record(result);
  record(result);
  EXPECT_THAT(events_,
              ElementsAre("cache misbehaved: broke a rule of the ABI 2 times in refresh; first: emit: passed no kind"));
  EXPECT_EQ(status().misuses.at("emit"), 4u);
  EXPECT_EQ(status().last_misuse, "emit: passed no kind (in refresh)");
}

TEST_F(WorkerReportsTest, DeniedSecretsAreCountedAndNameThePluginFile) {
  ipc::CallResult result;
  result.denied_secrets = 3;
  record(result);
  EXPECT_THAT(events_, ElementsAre("cache secret_denied: /plugins/cache.so asked for a secret that was not minted for "
                                   "it (in refresh); denied, 3 times so far"));
  EXPECT_EQ(status().denied_secrets, 3u);
}

TEST_F(WorkerReportsTest, TheLastFailureIsThatOfTheLastRefresh) {
  ipc::CallResult failed;
  failed.code = Code::unavailable;
  failed.message = "connection refused";
  record(failed);
  EXPECT_EQ(status().last_failure, "connection refused");
  record({});
  EXPECT_EQ(status().last_failure, "");
}

}  // namespace
}  // namespace driftd::host
