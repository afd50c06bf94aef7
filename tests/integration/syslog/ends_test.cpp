// SPDX-License-Identifier: Apache-2.0
// What an end of a connection says about what the server has read: nothing that it may have left counts as sent.
#include <gmock/gmock.h>
#include <csignal>
#include <filesystem>

#include "cli/syslog_stream.hpp"
#include "integration/syslog/ending_server.hpp"
#include "integration/syslog/syslog_sink.hpp"
#include "support/agent.hpp"

namespace driftd::test {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

constexpr const char* kUnread = "it is not certain that the server has read everything";

class SyslogEnds : public testing::Test {
 protected:
  SyslogEnds() { std::signal(SIGPIPE, SIG_IGN); }

  /// Sends 40 lines, and returns what their connection's end says.
  Status send_to(const EndingServer& server, seconds patience = seconds(20)) const {
    cli::SyslogServer at{"127.0.0.1", std::to_string(server.port()), certificates_.ca(), {}, {}, patience};
    auto stream = cli::SyslogStream::open(at);
    if (!stream) return tl::unexpected(stream.error());
    const std::string line = "<109>1 - - driftd - - - " + std::string(300, 'x');
    sent_ = 0;
    for (int i = 0; i < 40; ++i) {
      DRIFTD_CHECK(stream->send(line));
      sent_ += 4 + line.size();
    }
    return stream->finish();
  }
  std::string failure_of(Ending ending, seconds patience = seconds(20)) const {
    const EndingServer server(certificates_, ending);
    const Status sent = send_to(server, patience);
    return sent ? "sent" : sent.error().message;
  }

  Certificates certificates_;
  mutable std::size_t sent_ = 0;
};

TEST_F(SyslogEnds, WhatTheServerHasReadCounts) {
  for (const Ending ending : {Ending::after_the_client, Ending::after_both_ends}) {
    const EndingServer server(certificates_, ending);
    const Status sent = send_to(server);
    EXPECT_TRUE(sent) << sent.error().message;
    EXPECT_EQ(server.bytes(), sent_);
  }
}

TEST_F(SyslogEnds, AServerThatEndedBeforeUsHasNotReadEverything) {
  EXPECT_THAT(failure_of(Ending::at_once), HasSubstr(kUnread));
}

TEST_F(SyslogEnds, AServerThatClosesWithLinesInItsQueueHasNotReadThem) {
  EXPECT_THAT(failure_of(Ending::unread), HasSubstr(kUnread));
  // A server that is kept from running between its two steps looks like one that has read everything.
  const auto noticed = [&] { return failure_of(Ending::unread_in_two_steps).find(kUnread) != std::string::npos; };
  EXPECT_TRUE(one_of(5, noticed));
}

TEST_F(SyslogEnds, AServerThatDoesNotCloseIsNotWaitedForLongerThanAsked) {
  EXPECT_THAT(failure_of(Ending::left_open, seconds(2)), HasSubstr("did not close the connection in time"));
}

TEST_F(SyslogEnds, TheExportGoesOnFromTheFirstLineThatMayBeLost) {
  const TempDir dir;
  Agent agent(dir, "backends: []\n");
  agent.start();
  ASSERT_TRUE(eventually([&] { return agent.ask({"status"}).is_object(); }, seconds(30))) << agent.log();
  ASSERT_EQ(agent.cli({"reload"}).code, 0);
  const auto export_to = [&](const EndingServer& server) {
    return agent.cli({"audit", "export", "--format", "syslog", "--to",
                      "tls://127.0.0.1:" + std::to_string(server.port()), "--ca", certificates_.ca(), "--state",
                      dir.file("state")});
  };
  const EndingServer stopping(certificates_, Ending::unread);
  const Output lost = export_to(stopping);
  EXPECT_EQ(lost.code, 69) << lost.out;
  EXPECT_THAT(lost.err, HasSubstr(kUnread));
  EXPECT_THAT(lost.err, HasSubstr("the server has the lines up to 0"));
  EXPECT_FALSE(std::filesystem::exists(dir.file("state")));
  const EndingServer server(certificates_, Ending::after_the_client);
  const Output sent = export_to(server);
  EXPECT_EQ(sent.code, 0) << sent.err;
  EXPECT_GT(server.bytes(), 0U);
  EXPECT_TRUE(std::filesystem::exists(dir.file("state")));
}

/// The sink plugin has its own code for the same connection.
class SyslogSinkEnds : public testing::TestWithParam<bool> {
 protected:
  SyslogSinkEnds() { std::signal(SIGPIPE, SIG_IGN); }  // as a worker does, in which plugins run

  AgentRun::MakeSink sink(const EndingServer& server) const {
    nlohmann::json settings{{"address", address(server.port())}, {"transport", GetParam() ? "tls" : "tcp"}};
    if (GetParam()) settings["ca"] = certificates_.ca();
    return syslog_sink(settings);
  }
  /// Returns how many events count as delivered to a server that ends like this.
  std::int64_t delivered(Ending ending) const {
    const TempDir dir;
    const EndingServer server(certificates_, ending, GetParam());
    AgentRun agent(dir, sink(server));
    agent.commit(ending == Ending::at_once ? 120 : 20);
    const auto settled = [&] { return agent.view().state.starts_with("circuit open") || agent.totals().acked > 0; };
    EXPECT_TRUE(eventually(settled)) << agent.view().state;
    EXPECT_EQ(server.bytes(), 0U);
    return agent.totals().acked;
  }
  Certificates certificates_;
};

TEST_P(SyslogSinkEnds, WhatTheServerHasReadIsDelivered) {
  for (const Ending ending : {Ending::after_the_client, Ending::after_both_ends}) {
    const TempDir data;
    const EndingServer server(certificates_, ending, GetParam());
    AgentRun agent(data, sink(server));
    agent.commit(20);
    ASSERT_TRUE(eventually([&] { return agent.totals().acked == 20; })) << agent.view().state;
    EXPECT_GT(server.bytes(), 20U * 100);
  }
}

TEST_P(SyslogSinkEnds, NothingIsDeliveredToAServerThatEndsWithoutReading) {
  EXPECT_EQ(delivered(Ending::at_once), 0);
  EXPECT_EQ(delivered(Ending::unread), 0);
  if (!GetParam()) return;  // over plain TCP nobody can tell
  EXPECT_TRUE(one_of(5, [&] { return delivered(Ending::unread_in_two_steps) == 0; }));
}

INSTANTIATE_TEST_SUITE_P(Transports, SyslogSinkEnds, testing::Bool(),
                         [](const auto& info) { return info.param ? "Tls" : "Tcp"; });

}  // namespace
}  // namespace driftd::test
