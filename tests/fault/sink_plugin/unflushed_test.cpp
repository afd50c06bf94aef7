// SPDX-License-Identifier: Apache-2.0
// A worker that ends, or is upgraded, with events that it accepted and did not flush: they are sent again before any
// later one of their resource, and delivery goes on.
#include <csignal>

#include "fault/sink_plugin/bad_sinks.hpp"
#include "fault/sink_plugin/line_receiver.hpp"

namespace driftd::test {
namespace {

class UnflushedSink : public UpgradedSink {
 protected:
  static bool take_all(const ReceivedLine&) { return false; }
  static bool delivered(AgentRun& agent, std::int64_t count) {
    return eventually([&] { return agent.view().delivered >= count; });
  }
};

// Found by reading: the next worker was given a later event of the resource, and its flush made that one durable first.
TEST_F(UnflushedSink, AWorkerThatIsKilledBeforeItsFlushLosesNoPlaceInTheOrder) {
  constexpr std::size_t kRounds = 25;
  LineReceiver receiver(take_all);
  AgentRun agent(dir_, bad_sink(receiver.port(), "keeps"));
  std::size_t before_flush = 0;
  for (std::size_t round = 1; round <= kRounds; ++round) {
    const std::int64_t sent = agent.view().delivered;
    agent.commit(1);
    ASSERT_TRUE(delivered(agent, sent + 1)) << agent.view().state;
    const int pid = pid_in(agent.view().state);
    ASSERT_NE(pid, 0) << agent.view().state;
    ::kill(pid, SIGKILL);
    if (receiver.distinct() == 2 * (round - 1)) ++before_flush;
    agent.commit(1);  // of the same resource
    ASSERT_TRUE(eventually([&] { return agent.totals().acked == static_cast<std::int64_t>(2 * round); }))
        << "round " << round << ": " << agent.view().state << "; " << agent.view().last_error;
  }
  EXPECT_GE(before_flush, kRounds / 2);
  EXPECT_EQ(receiver.distinct(), 2 * kRounds);
  EXPECT_EQ(receiver.key_out_of_order(), "");
  EXPECT_EQ(agent.view().missed_wakeups, 0U);
  std::cout << before_flush << " of " << kRounds << " kills were before the flush\n";
}

TEST_F(UnflushedSink, AWorkerThatIsKilledAgainAndAgainLosesNothingThatItKept) {
  constexpr int kDrain = 9'000;  // three of each resource
  constexpr std::size_t kKills = 8;
  LineReceiver receiver(take_all);
  AgentRun agent(dir_, bad_sink(receiver.port(), "keeps"));
  agent.commit(kDrain);
  std::size_t kills = 0;
  std::int64_t next = 200;
  int last = 0;
  const auto drained = [&] {
    const auto view = agent.view();
    const int pid = pid_in(view.state);
    if (kills < kKills && view.delivered >= next && pid != 0 && pid != last) {
      ::kill(pid, SIGKILL);
      last = pid;
      ++kills;
      next = view.delivered + 700;
    }
    return agent.totals().acked == kDrain;
  };
  ASSERT_TRUE(eventually(drained, std::chrono::seconds(120)))
      << agent.totals().acked << " acknowledged; " << agent.view().state << "; " << agent.view().last_error;
  EXPECT_EQ(kills, kKills);
  EXPECT_EQ(receiver.distinct(), static_cast<std::size_t>(kDrain));
  EXPECT_EQ(receiver.key_out_of_order(), "");
  EXPECT_EQ(agent.totals().pending, 0);
  EXPECT_EQ(agent.view().missed_wakeups, 0U);
}

/// A plugin that keeps events is upgraded while events of one resource go on, and back again.
class UpgradedKeeper : public UnflushedSink, public ::testing::WithParamInterface<const char*> {};

TEST_P(UpgradedKeeper, LosesNothingAndNoPlaceInTheOrder) {
  constexpr int kUpgrades = 8;
  LineReceiver receiver(take_all);
  install("bad_sink");
  AgentRun agent(dir_, sink(receiver.port(), "keeps"));
  EXPECT_TRUE(eventually([&] { return pid_in(agent.view().state) != 0; })) << agent.view().state;
  std::int64_t committed = 0;
  const auto commit = [&] {
    agent.commit(1);
    ++committed;
  };
  for (int upgrade = 0; upgrade < kUpgrades; ++upgrade) {
    const int before = pid_in(agent.view().state);
    install(upgrade % 2 == 0 ? GetParam() : "bad_sink");
    const auto upgraded = [&] {
      commit();
      const int now = pid_in(agent.view().state);
      return now != before && now != 0;
    };
    EXPECT_TRUE(eventually(upgraded, std::chrono::seconds(30))) << agent.view().state;
    for (int i = 0; i < 10; ++i) commit();  // some of them before the next save
    EXPECT_TRUE(eventually([&] { return agent.totals().acked == committed; }))
        << agent.totals().acked << " of " << committed << "; " << agent.view().state << "; " << agent.view().last_error;
  }
  EXPECT_EQ(agent.view().missed_wakeups, 0U);
  EXPECT_EQ(receiver.distinct(), static_cast<std::size_t>(committed));
  EXPECT_EQ(receiver.key_out_of_order(), "");
  stop_watching_();
}
INSTANTIATE_TEST_SUITE_P(By, UpgradedKeeper, ::testing::Values("bad_sink_again", "bad_sink_no_flush"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace driftd::test
