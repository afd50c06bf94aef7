// SPDX-License-Identifier: Apache-2.0
// 10,000 drifts at once, with a running agent.
#include <chrono>
#include <iostream>

#include "base/instant.hpp"
#include "notified_agent.hpp"

namespace driftd::test {
namespace {

using std::chrono::seconds;

constexpr int kDrifts = 10'000;
constexpr double kWait = 5;  // seconds, `group_wait`

/// When the first of all drifts was opened, which begins the group's wait.
Nanos first_opened(const Agent& agent) {
  Nanos out = 0;
  const auto drifts = agent.rows({"drifts", "--all", "--limit", std::to_string(kDrifts)});
  EXPECT_EQ(drifts.size(), std::size_t{kDrifts});
  for (const auto& drift : drifts) {
    const Nanos at = parse_nanos(drift.at("opened").get<std::string>()).value_or(0);
    if (out == 0 || at < out) out = at;
  }
  return out;
}

TEST_F(Notified, TenThousandDriftsAtOnceAreNotifiedSoonAndNotTenThousandTimes) {
  topics_ = kDrifts;
  ASSERT_NO_FATAL_FAILURE(
      run_agent("group_wait: 5s, group_interval: 3s", "format: generic, secret: \"${env:HOOK_SECRET}\""));
  change(4);
  const auto queued = [&] { return agent_->ask({"queue"}).value("notifications_total", 0); };
  ASSERT_TRUE(eventually([&] { return queued() == kDrifts; }, seconds(60))) << queued() << "\n" << agent_->log();
  ASSERT_TRUE(eventually([&] { return !sent().empty(); }, seconds(20))) << agent_->log();
  const Nanos told = parse_nanos(sent().front().at("time").get<std::string>()).value_or(0);
  ASSERT_NE(told, 0);
  const double late = static_cast<double>(told - first_opened(*agent_)) / 1e9 - kWait;
  // The last of them is about all drifts: whatever came after the first one was told, too.
  ASSERT_TRUE(eventually([&] { return sent().back().value("count", 0) == kDrifts; }, seconds(20))) << agent_->log();
  std::cout << "10,000 drifts: the first notification " << late << " s after the group wait, " << sent().size()
            << " notifications\n";
  RecordProperty("late_s", std::to_string(late));
  RecordProperty("notifications", static_cast<int>(sent().size()));
  EXPECT_LT(late, 2.0);
  EXPECT_LE(sent().size(), 20u);
  EXPECT_GE(sent().size(), 1u);
}

}  // namespace
}  // namespace driftd::test
