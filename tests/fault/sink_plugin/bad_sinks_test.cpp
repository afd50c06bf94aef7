// SPDX-License-Identifier: Apache-2.0
// Whatever the plugin of a sink does, every event is delivered or a dead letter, and the books say so.
#include <gmock/gmock.h>
#include <csignal>
#include <future>

#include "fault/sink_plugin/bad_sinks.hpp"
#include "fault/sink_plugin/line_receiver.hpp"

namespace driftd::test {
namespace {

using ::testing::HasSubstr;

constexpr int kEvents = 300;

/// What status says about the sink after it misbehaved, as a regular expression.
struct Mode {
  const char* name;
  const char* status;
};

class BadSinks : public ::testing::TestWithParam<Mode> {
 protected:
  TempDir dir_;
};

TEST_P(BadSinks, CostTimeAndNoEvent) {
  if (kSanitized && std::string(GetParam().name) == "leak")
    GTEST_SKIP() << "LOUD: a sanitizer's shadow memory counts, too";
  int bad_left = 2;
  LineReceiver receiver([&](const ReceivedLine&) { return bad_left > 0 && bad_left-- > 0; });
  AgentRun agent(dir_, bad_sink(receiver.port(), GetParam().name));
  agent.commit(kEvents);
  ASSERT_TRUE(eventually([&] { return agent.totals().acked == kEvents; }, std::chrono::seconds(60)))
      << agent.totals().acked << " acknowledged; " << agent.view().state << "; " << agent.view().last_error;
  EXPECT_EQ(bad_left, 0);
  EXPECT_EQ(receiver.distinct(), static_cast<std::size_t>(kEvents));
  EXPECT_EQ(receiver.key_out_of_order(), "");
  const auto totals = agent.totals();
  EXPECT_EQ(totals.emitted, totals.acked + totals.pending + totals.dead + totals.dropped);
  EXPECT_EQ(totals.pending, 0);
  EXPECT_EQ(totals.dead, 0);
  EXPECT_EQ(agent.view().missed_wakeups, 0U);
  const std::string state = agent.view().state;
  EXPECT_TRUE(std::regex_search(state, std::regex(GetParam().status))) << state;
}

INSTANTIATE_TEST_SUITE_P(
    Each, BadSinks,
    ::testing::Values(
        Mode{"segfault", "signal 11 \\(Segmentation fault\\) in deliver"},
        Mode{"abort", "signal 6 \\(Aborted\\) in deliver"}, Mode{"exit", "exited with 3"},
        Mode{"hang", "no answer within .*killed in deliver"}, Mode{"spin", "no answer within .*killed in deliver"},
        Mode{"leak", "RSS .* over the budget"}, Mode{"garbage", "wrote garbage to the protocol"},
        Mode{"twice", "rules of sink.h: settle \\d+, last: settle: event \\d+ is settled already"},
        Mode{"junk", "rules of sink.h:.* settle \\d+,"}, Mode{"after_return", "rules of sink.h:.* settle \\d+,"},
        Mode{"other_thread", "rules of sink.h:.* settle \\d+,"},
        Mode{"never",
             "rules of sink.h: deliver \\d+, last: deliver: answered OK without a verdict about \\d+ of \\d+"}),
    [](const auto& info) { return std::string(info.param.name); });

class KilledSink : public ::testing::Test {
 protected:
  TempDir dir_;
};

TEST_F(KilledSink, AWorkerThatIsKilledAgainAndAgainDuringADrainLosesNothing) {
  constexpr int kDrain = 10'000;
  constexpr std::size_t kKills = 8, kTwiceForAKill = 256;
  LineReceiver receiver([](const ReceivedLine&) { return false; });
  AgentRun agent(dir_, bad_sink(receiver.port(), "none"));
  agent.commit(kDrain);
  std::size_t kills = 0;
  std::size_t next = 200;
  int last = 0;
  const auto drained = [&] {
    const int pid = pid_in(agent.view().state);
    if (kills < kKills && receiver.accepted().size() >= next && pid != 0 && pid != last) {
      ::kill(pid, SIGKILL);
      last = pid;
      ++kills;
      next = receiver.accepted().size() + 800;
    }
    return agent.totals().acked == kDrain;
  };
  ASSERT_TRUE(eventually(drained, std::chrono::seconds(120)))
      << agent.totals().acked << " acknowledged; " << agent.view().state << "; " << agent.view().last_error;
  EXPECT_EQ(kills, kKills);
  EXPECT_EQ(receiver.distinct(), static_cast<std::size_t>(kDrain));
  EXPECT_LE(receiver.accepted().size(), kDrain + kKills * kTwiceForAKill);
  EXPECT_EQ(receiver.key_out_of_order(), "");
  EXPECT_EQ(agent.totals().pending, 0);
  std::cout << kDrain << " events, " << kills << " kills of the worker: 0 lost, " << receiver.accepted().size() - kDrain
            << " twice\n";
}

TEST_F(KilledSink, AnEventThatEndsTheWorkerEachTimeBecomesADeadLetterAndTheOthersAreDelivered) {
  const std::string poison = "/r7";
  LineReceiver receiver([&](const ReceivedLine& line) { return line.key.ends_with(poison); });
  AgentRun agent(dir_, bad_sink(receiver.port(), "segfault", 5));
  agent.commit(kEvents);
  ASSERT_TRUE(eventually([&] { return agent.totals().pending == 0 && agent.totals().emitted == kEvents; },
                         std::chrono::seconds(60)))
      << agent.totals().pending << " pending; " << agent.view().state << "; " << agent.view().last_error;
  EXPECT_EQ(agent.totals().dead, 1);
  EXPECT_EQ(agent.totals().acked, kEvents - 1);
  EXPECT_EQ(receiver.distinct(), static_cast<std::size_t>(kEvents - 1));
  EXPECT_TRUE(eventually([&] { return agent.view().state.find("worker running") != std::string::npos; }))
      << agent.view().state;
}

TEST_F(KilledSink, ASecretThatThePluginTellsIsNotShown) {
  int bad_left = 1;
  LineReceiver receiver([&](const ReceivedLine&) { return bad_left > 0 && bad_left-- > 0; });
  AgentRun agent(dir_, bad_sink(receiver.port(), "tells_secret"));
  ::testing::internal::CaptureStderr();
  agent.commit(kEvents);
  const bool done = eventually([&] { return agent.totals().acked + agent.totals().dead == kEvents; });
  const std::string log = ::testing::internal::GetCapturedStderr();
  ASSERT_TRUE(done) << agent.view().state;
  EXPECT_EQ(agent.totals().dead, 1);
  EXPECT_THAT(log, HasSubstr("is a dead letter"));
  EXPECT_THAT(log, HasSubstr("[REDACTED]"));
  for (const auto& text : {log, agent.view().state, agent.view().last_error})
    EXPECT_EQ(text.find("canary-7f3a9b"), std::string::npos) << text;
}

// Found by an attack: what waited for the old version was given to the new one, which refused it for good.
TEST_F(UpgradedSink, GetsNoBatchThatOnlyTheVersionBeforeItAskedFor) {
  std::promise<void> answer;
  const std::shared_future<void> answers = answer.get_future().share();
  LineReceiver receiver([answers](const ReceivedLine&) { return answers.wait(), false; });
  install("bad_sink_few");
  AgentRun agent(dir_, sink(receiver.port()));
  agent.commit(kEvents);
  EXPECT_TRUE(eventually([&] { return pid_in(agent.view().state) != 0; })) << agent.view().state;
  const int before = pid_in(agent.view().state);
  EXPECT_TRUE(eventually([&] { return agent.view().in_flight > 4 * 8; })) << "as many as its four calls do not take";
  install("bad_sink_next");
  const auto upgraded = [&] { return pid_in(agent.view().state) != before && pid_in(agent.view().state) != 0; };
  EXPECT_TRUE(eventually(upgraded, std::chrono::seconds(30))) << agent.view().state;
  answer.set_value();
  EXPECT_TRUE(eventually([&] { return agent.totals().pending == 0; }, std::chrono::seconds(60)))
      << agent.totals().pending << " pending; " << agent.view().state << "; " << agent.view().last_error;
  EXPECT_EQ(agent.totals().dead, 0) << agent.view().last_error;
  EXPECT_EQ(receiver.distinct(), static_cast<std::size_t>(kEvents));
  EXPECT_TRUE(eventually([&] { return agent.view().state.find("bad_sink 3.0.0") != std::string::npos; }))
      << agent.view().state;
  stop_watching_();
}

TEST_F(KilledSink, AReceiverThatIsAwayCostsNoAttemptAndDeliveryGoesOnWhenItIsBack) {
  int port = 0;
  {
    const LineReceiver gone([](const ReceivedLine&) { return false; });
    port = gone.port();
  }
  AgentRun agent(dir_, bad_sink(port, "none"));
  agent.commit(kEvents);
  ASSERT_TRUE(eventually([&] { return agent.view().state.starts_with("circuit open"); })) << agent.view().state;
  EXPECT_THAT(agent.view().state, HasSubstr("connection refused"));
  EXPECT_EQ(agent.totals().dead, 0);
}

}  // namespace
}  // namespace driftd::test
