// SPDX-License-Identifier: Apache-2.0
// Events that wait in the store when a broker comes back. The store, the relay and JetStream are real, and nothing is
// committed meanwhile that could wake a sink by chance.
#include <gtest/gtest.h>
#include <iostream>

#include "bus.hpp"
#include "support/agent_run.hpp"
#include "support/patience.hpp"

namespace driftd::test {
namespace {

constexpr int kEvents = 20'000;
constexpr std::chrono::seconds kBound{20};  // eventually() waits longer under a sanitizer

class DrainTest : public ::testing::Test {
 protected:
  /// Expects that the store's totals count every event as acknowledged within kBound, and prints how long it took.
  void expect_drained(AgentRun& agent) {
    const auto begin = std::chrono::steady_clock::now();
    const bool drained = eventually([&] { return agent.totals().acked == kEvents; }, kBound);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    std::cout << kEvents << " waiting events acknowledged after " << took.count() << " s\n";
    EXPECT_TRUE(drained) << agent.totals().acked << " of " << kEvents << " events were acknowledged; "
                         << agent.view().state << " " << agent.view().last_error;
    EXPECT_EQ(agent.view().missed_wakeups, 0U);
  }
  AgentRun::MakeSink sink() const {
    sinks::NatsSettings nats;
    nats.servers = {server_.url()};
    return nats_sink(without_views(nats));
  }
  TempDir dir_;
  NatsServer server_;
};

TEST_F(DrainTest, TwentyThousandWaitingEventsAreAcknowledgedWithin20SecondsOfTheBrokersReturn) {
  server_.stop();
  AgentRun agent(dir_, sink());
  agent.commit(kEvents);
  ASSERT_TRUE(eventually([&] { return agent.view().state.rfind("circuit open", 0) == 0; })) << agent.view().state;
  server_.start();
  expect_drained(agent);
}

TEST_F(DrainTest, TheSameAfterARestartOfTheAgent) {
  server_.stop();
  {
    AgentRun before(dir_, sink());
    before.commit(kEvents);
  }
  server_.start();
  AgentRun agent(dir_, sink());
  expect_drained(agent);
}

}  // namespace
}  // namespace driftd::test
