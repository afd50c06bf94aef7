// SPDX-License-Identifier: Apache-2.0
// `driftd audit export --to` sends the lines of a real agent over TLS to a real rsyslogd: each at least once, through
// lost connections, a server that is restarted and an exporter that is killed.
#include <gmock/gmock.h>
#include <filesystem>
#include <fstream>
#include <set>

#include "integration/syslog/rsyslog.hpp"
#include "support/agent.hpp"
#include "support/cutting_relay.hpp"

namespace driftd::test {
namespace {

using std::chrono::seconds;
using testing::AnyOf;
using testing::HasSubstr;

class AuditForward : public testing::Test {
 protected:
  AuditForward() : agent_(dir_, "backends: []\n") {
    agent_.start();
    EXPECT_TRUE(eventually([&] { return agent_.ask({"status"}).is_object(); }, seconds(30))) << agent_.log();
  }
  /// Each has two lines: that it was asked for, and how it ended.
  void make_lines(int requests) const {
    for (int i = 0; i < requests; ++i) EXPECT_EQ(agent_.cli({"reload"}).code, 0);
  }
  std::vector<std::string> ids() const {
    std::vector<std::string> out;
    for (const auto& line : agent_.rows({"audit", "--limit", "1000"}))
      out.push_back(std::to_string(line.at("id").get<int>()));
    return out;
  }
  static std::set<std::string> set_of(const std::vector<std::string>& ids) { return {ids.begin(), ids.end()}; }
  static std::vector<std::string> ids_at(const Rsyslog& server) {
    std::vector<std::string> out;
    for (const auto& message : server.messages()) out.push_back(message.at("sd").at("driftd@32473").at("line"));
    return out;
  }
  std::vector<std::string> words(int port, const std::string& state = "state") const {
    return {"audit", "export",        "--format", "syslog",        "--to", "tls://127.0.0.1:" + std::to_string(port),
            "--ca",  authority_.ca(), "--state",  dir_.file(state)};
  }
  Output send(std::vector<std::string> words, const std::vector<std::string>& more = {}) const {
    words.insert(words.end(), more.begin(), more.end());
    return agent_.cli(std::move(words));
  }
  Child follow(int port) const {
    std::vector<std::string> command{Agent::binary()};
    const auto more = words(port);
    command.insert(command.end(), more.begin(), more.end());
    command.insert(command.end(), {"--follow", "--socket", agent_.socket()});
    return Child(std::move(command), {dir_.file("follower.log"), {}, {}});
  }

  TempDir dir_;
  Certificates authority_;
  Agent agent_;
};

TEST_F(AuditForward, EachLineIsSentOnceAndTheNextRunGoesOn) {
  const Rsyslog server(authority_);
  make_lines(20);
  const Output first = send(words(server.tls()));
  ASSERT_EQ(first.code, 0) << first.err;
  ASSERT_TRUE(eventually([&] { return server.count() >= ids().size(); }));
  EXPECT_EQ(ids_at(server), ids());
  for (const auto& message : server.messages()) EXPECT_EQ(message.at("appname"), "driftd");
  ASSERT_EQ(send(words(server.tls())).code, 0);
  make_lines(5);
  ASSERT_EQ(send(words(server.tls())).code, 0);
  ASSERT_TRUE(eventually([&] { return server.count() >= ids().size(); }));
  EXPECT_EQ(ids_at(server), ids());
}

TEST_F(AuditForward, NothingIsLostThroughCutsRestartsAndKills) {
  Rsyslog server(authority_);
  CuttingRelay relay(server.tls());
  const auto arrived = [&] { return server.count() > 0 && set_of(ids_at(server)) == set_of(ids()); };
  // The exporter knows it, too: with each try that fails, the next one waits twice as long.
  const auto known = [&] { return read_file(dir_.file("state")).starts_with(ids().back() + " "); };
  Child exporter = follow(relay.port());
  // the server sends some 2 KiB in a handshake, then two tickets, and its end
  for (const long long bytes : {0ll, 300ll, 1'000ll, 2'000ll, 2'500ll, 3'000ll}) {
    SCOPED_TRACE("cut after " + std::to_string(bytes));
    const int before = relay.cuts();
    relay.cut_after(bytes);
    make_lines(3);
    const auto is_cut = [&] {
      if (relay.cuts() == before && arrived()) make_lines(1);  // this many bytes take another connection
      return relay.cuts() > before;
    };
    ASSERT_TRUE(eventually(is_cut, seconds(60))) << read_file(dir_.file("follower.log"));
    relay.cut_after(-1);
    ASSERT_TRUE(eventually(known, seconds(60))) << read_file(dir_.file("follower.log"));
    ASSERT_TRUE(eventually(arrived)) << read_file(dir_.file("follower.log"));
    ASSERT_TRUE(exporter.running()) << read_file(dir_.file("follower.log"));
  }
  const std::size_t log_before = read_file(dir_.file("follower.log")).size();
  server.stop();
  make_lines(5);
  const auto says_so = [&] {
    return read_file(dir_.file("follower.log")).find("trying again from line", log_before) != std::string::npos;
  };
  EXPECT_TRUE(eventually(says_so)) << read_file(dir_.file("follower.log"));
  server.start();
  exporter.kill();
  make_lines(3);
  exporter = follow(relay.port());
  EXPECT_TRUE(eventually(arrived, seconds(60))) << read_file(dir_.file("follower.log"));
  ASSERT_EQ(agent_.stop(), 0);
  agent_.start();  // a follower outlives the agent's restarts, too
  ASSERT_TRUE(eventually([&] { return agent_.ask({"status"}).is_object(); }, seconds(30)));
  make_lines(2);
  EXPECT_TRUE(eventually(arrived, seconds(60))) << read_file(dir_.file("follower.log"));
}

TEST_F(AuditForward, NothingIsSentToAServerThatIsNotTrusted) {
  const Rsyslog server(authority_, true);
  const Certificates stranger;
  make_lines(1);
  auto wrong = words(server.tls());
  wrong[7] = stranger.ca();
  const Output untrusted = send(wrong);
  EXPECT_EQ(untrusted.code, 69);
  EXPECT_THAT(untrusted.err, HasSubstr("self-signed certificate in certificate chain"));
  EXPECT_THAT(untrusted.err, HasSubstr("the server has the lines up to 0"));
  auto other_name = words(server.tls());
  other_name[5] = "tls://127.0.0.2:" + std::to_string(server.tls());
  const Output misnamed = send(other_name);
  EXPECT_EQ(misnamed.code, 69);
  EXPECT_THAT(misnamed.err, HasSubstr("TLS: IP address mismatch; the server has the lines up to 0"));
  const Output without = send(words(server.tls()));
  EXPECT_EQ(without.code, 69) << "the server wants a certificate";
  // With TLS 1.3 the handshake is over for the client before the server misses the certificate, and ends.
  EXPECT_THAT(without.err, AnyOf(HasSubstr(": sending: "), HasSubstr(": waiting for the server's end")));
  EXPECT_THAT(without.err, HasSubstr("the server has the lines up to 0"));
  EXPECT_EQ(server.count(), 0u) << server.raw();
  EXPECT_FALSE(std::filesystem::exists(dir_.file("state")));
  authority_.issue("client", "driftd", "DNS:driftd");
  const Output with =
      send(words(server.tls()), {"--cert", authority_.certificate("client"), "--key", authority_.key("client")});
  EXPECT_EQ(with.code, 0) << with.err;
  EXPECT_TRUE(eventually([&] { return server.count() == ids().size(); })) << server.log();
  EXPECT_EQ(ids_at(server), ids()) << "each of them once: nothing came late of the earlier ones";
}

TEST_F(AuditForward, TheStateOfAnotherLogIsRefused) {
  const Rsyslog server(authority_);
  make_lines(2);
  ASSERT_EQ(send(words(server.tls())).code, 0);
  const std::string id = ids().back();
  std::ofstream(dir_.file("other")) << id << " " << std::string(64, 'a') << "\n";
  const Output other = send(words(server.tls(), "other"));
  EXPECT_EQ(other.code, 1);
  EXPECT_THAT(other.err, HasSubstr("has another one under that number"));
  std::ofstream(dir_.file("other")) << "900000 " << std::string(64, 'a') << "\n";
  EXPECT_EQ(send(words(server.tls(), "other")).code, 1);
  std::ofstream(dir_.file("other")) << "not a state file\n";
  EXPECT_THAT(send(words(server.tls(), "other")).err, HasSubstr("is not a state file"));
}

}  // namespace
}  // namespace driftd::test
