// SPDX-License-Identifier: Apache-2.0
// The example sink plugin, in a real worker, against a real rsyslogd; what arrived is read by a parser that is not
// ours.
#include <gmock/gmock.h>
#include <fstream>

#include "integration/syslog/syslog_sink.hpp"
#include "support/agent.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

TEST_F(SyslogSink, DeliversOverTcpWithOctetCounting) {
  const Rsyslog server(certificates_);
  AgentRun agent(dir_, syslog_sink({{"address", address(server.tcp())}, {"transport", "tcp"}}));
  agent.commit(kEvents);
  expect_all(agent, server);
}

TEST_F(SyslogSink, DeliversOverTlsToAServerThatItsAuthoritySigned) {
  const Rsyslog server(certificates_);
  AgentRun agent(dir_, syslog_sink({{"address", address(server.tls())}, {"ca", certificates_.ca()}}));
  agent.commit(kEvents);
  expect_all(agent, server);
}

TEST_F(SyslogSink, ShowsAClientCertificateWhereTheServerWantsOne) {
  const Rsyslog server(certificates_, true);
  certificates_.issue("agent", "driftd", "DNS:driftd");
  AgentRun agent(dir_, syslog_sink({{"address", address(server.tls())},
                                    {"server_name", "localhost"},
                                    {"ca", certificates_.ca()},
                                    {"cert", certificates_.certificate("agent")},
                                    {"key", certificates_.key("agent")}}));
  agent.commit(kEvents);
  expect_all(agent, server);
}

TEST_F(SyslogSink, CountsNothingAsDeliveredThatAServerRefusedForItsClientCertificate) {
  const Rsyslog server(certificates_, true);
  AgentRun agent(dir_, syslog_sink({{"address", address(server.tls())}, {"ca", certificates_.ca()}}));
  agent.commit(20);
  ASSERT_TRUE(eventually([&] { return agent.view().state.starts_with("circuit open"); })) << agent.view().state;
  EXPECT_EQ(agent.totals().acked, 0);
  EXPECT_EQ(server.count(), 0U);
}

TEST_F(SyslogSink, SendsNothingToAServerOfAnotherNameOrAuthority) {
  const Rsyslog server(certificates_);
  const Certificates others;
  for (const json& settings :
       {json{{"address", address(server.tls())}, {"ca", certificates_.ca()}, {"server_name", "logs.example.org"}},
        json{{"address", address(server.tls())}, {"ca", others.ca()}}}) {
    const TempDir dir;
    AgentRun agent(dir, syslog_sink(settings));
    agent.commit(20);
    ASSERT_TRUE(eventually([&] { return agent.view().state.starts_with("circuit open"); })) << agent.view().state;
    EXPECT_THAT(agent.view().state, HasSubstr("TLS"));
    EXPECT_EQ(agent.totals().acked, 0);
  }
  EXPECT_EQ(server.count(), 0U);
}

TEST_F(SyslogSink, DeliversOverUdpOneDatagramForEachEvent) {
  const Rsyslog server(certificates_);
  AgentRun agent(dir_, syslog_sink({{"address", address(server.udp())}, {"transport", "udp"}}));
  agent.commit(kEvents);
  ASSERT_TRUE(eventually([&] { return agent.totals().acked == static_cast<std::int64_t>(kEvents); }));
  // UDP may lose some even on loopback, where a full buffer drops them.
  ASSERT_TRUE(eventually([&] { return server.count() >= kEvents / 2; })) << server.count();
  const auto messages = server.messages();
  EXPECT_EQ(ids_of(messages).size(), messages.size());
}

TEST_F(SyslogSink, AServerThatRestartsDuringADrainLosesNothing) {
  Rsyslog server(certificates_);
  AgentRun agent(dir_, syslog_sink({{"address", address(server.tcp())}, {"transport", "tcp"}}));
  constexpr std::size_t kDrain = 4'000;
  agent.commit(kDrain);
  ASSERT_TRUE(eventually([&] { return server.count() >= 500; })) << agent.view().state;
  server.stop();
  ASSERT_TRUE(eventually([&] { return agent.view().state.starts_with("circuit open"); })) << agent.view().state;
  EXPECT_LT(agent.totals().acked, static_cast<std::int64_t>(kDrain));
  server.start();
  ASSERT_TRUE(
      eventually([&] { return agent.totals().acked == static_cast<std::int64_t>(kDrain); }, std::chrono::seconds(60)))
      << agent.totals().acked << "; " << agent.view().state;
  EXPECT_EQ(ids_of(server.messages()).size(), kDrain);
}

/// A real agent whose events go to rsyslog, to a file, and to a syslog server that is not there.
class SyslogAgent : public SyslogSink {
 protected:
  std::string body(const Rsyslog& server) const {
    const std::string state = dir_.write("terraform.tfstate", R"({"version": 4, "terraform_version": "1.5.7",
      "serial": 1, "lineage": "l-1", "outputs": {"a": {"value": "1", "type": "string"}}, "resources": []})");
    return "backends:\n  - {name: platform, provider: terraform, interval: 500ms, settings: {path: " + state + "}}\n" +
           "sinks:\n  log: {type: plugin, plugin: syslog, settings: {address: \"" + address(server.tls()) +
           "\", ca: " + certificates_.ca() + "}}\n" + "  away: {type: plugin, plugin: syslog, settings: {address: \"" +
           address(free_port()) + "\", transport: tcp}}\n" + "  copy: {type: file, path: " + dir_.file("events.jsonl") +
           "}\n";
  }
};

TEST_F(SyslogAgent, FindsThePluginBesideTheProvidersAndEachSinkIsOnItsOwn) {
  const Rsyslog server(certificates_);
  Agent agent(dir_, body(server), {}, {Agent::build("providers"), Agent::build("sinks-examples")});
  const Output valid = agent.cli({"validate", agent.config()});
  EXPECT_EQ(valid.code, 0) << valid.out << valid.err;
  agent.start();
  ASSERT_TRUE(eventually([&] { return server.count() >= 1; })) << agent.log();
  const auto copy = [&] { return read_file(dir_.file("events.jsonl")); };
  ASSERT_TRUE(eventually([&] { return !copy().empty(); }));
  const std::string first = copy().substr(0, copy().find('\n'));
  const auto messages = server.messages();
  EXPECT_TRUE(ids_of(messages).contains(json::parse(first).at("id"))) << first;
  EXPECT_EQ(messages.at(0).at("sd").at("driftd@32473").at("backend"), "platform");
  const std::string status = agent.cli({"status"}).out;
  EXPECT_THAT(status, HasSubstr("syslog 0.1.0: worker running"));
  EXPECT_THAT(status, HasSubstr("Connection refused"));
  EXPECT_EQ(agent.cli({"books"}).code, 0) << agent.cli({"books"}).out;
  EXPECT_THAT(agent.cli({"plugin", "ls"}).out, HasSubstr("syslog"));
  EXPECT_EQ(agent.stop(), 0);
}

}  // namespace
}  // namespace driftd::test
