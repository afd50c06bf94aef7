// SPDX-License-Identifier: Apache-2.0
// The example sink plugin over a Unix datagram socket, as /dev/log is one, against the imuxsock of a real rsyslogd.
#include "integration/syslog/syslog_sink.hpp"

namespace driftd::test {
namespace {

using ::testing::HasSubstr;

class SyslogUnixSocket : public SyslogSink {};

TEST_F(SyslogUnixSocket, DeliversOneDatagramForEachEventAndLosesNone) {
  const Rsyslog server(certificates_);
  AgentRun agent(dir_, syslog_sink({{"socket", server.socket()}}));
  agent.commit(kEvents);
  expect_all(agent, server);
}

TEST_F(SyslogUnixSocket, DeliversEveryEventOfADrainAlthoughTheQueueOfTheSocketIsFarSmaller) {
  constexpr std::size_t kDrain = 5'000;
  const Rsyslog server(certificates_);
  AgentRun agent(dir_, syslog_sink({{"socket", server.socket()}, {"message", "event"}, {"max_bytes", 100'000}}));
  agent.commit(kDrain);
  ASSERT_TRUE(eventually([&] { return agent.totals().acked == static_cast<std::int64_t>(kDrain); }))
      << agent.totals().acked << " acknowledged; " << agent.view().state;
  ASSERT_TRUE(eventually([&] { return server.count() >= kDrain; })) << server.count() << " arrived";
  EXPECT_EQ(ids_of(server.messages()).size(), kDrain);
}

TEST_F(SyslogUnixSocket, WaitsForAServerThatStartsAfterTheAgentAndForOneThatRestarts) {
  Rsyslog server(certificates_);
  server.stop();
  AgentRun agent(dir_, syslog_sink({{"socket", server.socket()}}));
  agent.commit(kEvents);
  ASSERT_TRUE(eventually([&] { return agent.view().state.starts_with("circuit open"); })) << agent.view().state;
  EXPECT_THAT(agent.view().state, HasSubstr(server.socket()));
  EXPECT_EQ(agent.totals().acked, 0);
  server.start();
  expect_all(agent, server);
  server.stop();
  agent.commit(1);
  ASSERT_TRUE(eventually([&] { return agent.view().state.starts_with("circuit open"); })) << agent.view().state;
  server.start();
  ASSERT_TRUE(eventually([&] { return server.count() == kEvents + 1; })) << agent.view().state;
  EXPECT_EQ(agent.totals().dead, 0);
}

TEST_F(SyslogUnixSocket, AMessageThatFitsIntoNoDatagramBecomesADeadLetterThatSaysWhatToChange) {
  const Rsyslog server(certificates_);
  AgentRun agent(dir_, syslog_sink({{"socket", server.socket()}, {"message", "event"}, {"max_bytes", 1'048'576}}));
  agent.commit_large(600'000);
  ASSERT_TRUE(eventually([&] { return agent.totals().dead == 1; })) << agent.view().state;
  EXPECT_THAT(agent.view().last_error, HasSubstr("fits into no datagram to " + server.socket() + "; lower max_bytes"));
}

}  // namespace
}  // namespace driftd::test
