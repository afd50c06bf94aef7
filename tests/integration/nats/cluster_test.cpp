// SPDX-License-Identifier: Apache-2.0
// Three servers with TLS on both sides, logins without passwords, and a stream of three replicas whose leader is
// killed: with Debian's nats-server and with a current one.
#include <gtest/gtest.h>
#include <cstdlib>

#include "bus.hpp"
#include "support/nats_cluster.hpp"
#include "support/patience.hpp"

namespace driftd::test {
namespace {

using namespace std::chrono_literals;

/// The server's program, and how the agent logs in.
struct Case {
  bool current = false;
  NatsCluster::Login login = NatsCluster::Login::nkey;
};

sinks::NatsSettings settings_for(const NatsCluster& cluster, const NatsAccess& access) {
  sinks::NatsSettings out;
  out.servers = cluster.urls();
  out.replicas = 3;
  out.views = false;
  out.tls = true;
  out.tls_ca = access.ca;
  out.tls_cert = access.certificate;
  out.tls_key = access.key;
  out.credentials_file = access.credentials;
  out.nkey_public = access.nkey_public;
  out.nkey_seed_file = access.nkey_seed_file;
  return out;
}

class NatsClusterTest : public testing::TestWithParam<Case> {
 protected:
  NatsCluster cluster_{GetParam().current ? current_nats().server : "nats-server", GetParam().login};
  sinks::NatsSettings settings_ = settings_for(cluster_, cluster_.access());

  /// The numbers of events 1 to `count` that the stream does not have.
  std::vector<std::int64_t> lost(std::int64_t count) const {
    std::set<std::string> there;
    for (const auto& message : cluster_.contents("DRIFT")) there.insert(message.ce_id);
    std::vector<std::int64_t> out;
    for (std::int64_t n = 1; n <= count; ++n) {
      if (there.count(sample_stored(n).stamp.id) == 0) out.push_back(n);
    }
    return out;
  }
  /// True if the events of each topic stand in the stream in the order of their numbers, repetitions aside.
  testing::AssertionResult in_order() const {
    std::map<std::string, std::string> newest;
    std::set<std::string> seen;
    for (const auto& message : cluster_.contents("DRIFT")) {
      std::string key;
      for (const auto& [name, value] : message.headers) {
        if (name == "ce-partitionkey") key = value;
      }
      if (!seen.insert(message.ce_id).second) continue;
      if (message.ce_id < newest[key]) return testing::AssertionFailure() << message.ce_id << " after " << newest[key];
      newest[key] = message.ce_id;
    }
    return testing::AssertionSuccess();
  }
};

std::string name_of(const testing::TestParamInfo<Case>& info) {
  const bool nkey = info.param.login == NatsCluster::Login::nkey;
  return std::string(info.param.current ? "Current" : "Debian") + (nkey ? "Nkey" : "Creds");
}

TEST_P(NatsClusterTest, AStreamOfThreeReplicasIsMadeAndItsLeaderMayDie) {
  const auto count = std::int64_t{200};
  RelayRunner runner(nats_sink(settings_));
  for (std::int64_t n = 1; n <= count / 2; ++n) runner.add(event_of_topic(n, n % 10));
  ASSERT_TRUE(delivered(runner, count / 2)) << runner.view().last_error;
  EXPECT_EQ(cluster_.replicas("DRIFT"), 3);
  std::optional<std::size_t> leader;
  ASSERT_TRUE(eventually([&] { return (leader = cluster_.leader("DRIFT")).has_value(); }));
  cluster_.sigkill(*leader);
  for (std::int64_t n = count / 2 + 1; n <= count; ++n) runner.add(event_of_topic(n, n % 10));
  ASSERT_TRUE(delivered(runner, count)) << runner.view().last_error;
  EXPECT_EQ(lost(count), std::vector<std::int64_t>{});
  EXPECT_TRUE(in_order());
  EXPECT_EQ(runner.view().missed_wakeups, 0U);
}

TEST_P(NatsClusterTest, ALoginThatTheClusterDoesNotKnowIsRefusedAndNamed) {
  NatsAccess access = cluster_.access();
  if (GetParam().login == NatsCluster::Login::creds) {
    access = cluster_.stranger();
  } else {
    access.nkey_public = access.nkey_seed_file = "";
  }
  RelayRunner runner(nats_sink(settings_for(cluster_, access)));
  runner.add(sample_stored(1));
  const auto refused = [&runner] {
    const std::string error = runner.view().last_error;
    return error.find("uthorization") != std::string::npos || error.find("uthentication") != std::string::npos;
  };
  EXPECT_TRUE(eventually(refused, 40s)) << runner.view().last_error;
  EXPECT_EQ(runner.view().delivered, 0);
}

TEST_P(NatsClusterTest, AClientWithoutACertificateIsRefusedAndNamed) {
  sinks::NatsSettings settings = settings_;
  settings.tls_cert = settings.tls_key = "";
  RelayRunner runner(nats_sink(settings));
  runner.add(sample_stored(1));
  EXPECT_TRUE(eventually([&] { return runner.view().state.starts_with("circuit open"); }, 40s)) << runner.view().state;
  EXPECT_FALSE(runner.view().last_error.empty());
  EXPECT_EQ(runner.view().delivered, 0);
}

INSTANTIATE_TEST_SUITE_P(Servers, NatsClusterTest,
                         testing::Values(Case{false, NatsCluster::Login::nkey}, Case{true, NatsCluster::Login::creds}),
                         name_of);

/// The leader of the stream is killed again and again while events are committed. DRIFTD_LEADER_KILL_SECONDS: how long;
/// `make soak` says 600.
class NatsLeaderKills : public NatsClusterTest {};

TEST_P(NatsLeaderKills, LoseNothingAndKeepTheOrderOfEachResource) {
  const char* text = std::getenv("DRIFTD_LEADER_KILL_SECONDS");
  const std::chrono::seconds length(text == nullptr ? 60 : std::atoi(text));
  RelayRunner runner(nats_sink(settings_));
  const auto end = std::chrono::steady_clock::now() + length;
  auto next_kill = std::chrono::steady_clock::now() + 3s;
  std::optional<std::size_t> down;
  std::int64_t count = 0;
  int kills = 0;
  while (std::chrono::steady_clock::now() < end) {
    ++count;
    runner.add(event_of_topic(count, count % 25));
    const auto next_event = std::chrono::steady_clock::now() + 10ms;  // the rate: a hundred events a second at most
    ASSERT_TRUE(eventually([&] { return std::chrono::steady_clock::now() >= next_event; }));
    if (std::chrono::steady_clock::now() < next_kill) continue;
    if (down) {
      cluster_.start(*down);
      down.reset();
    } else if (const auto leader = cluster_.leader("DRIFT")) {
      cluster_.sigkill(*leader);
      down = leader;
      ++kills;
    }
    next_kill = std::chrono::steady_clock::now() + 3s;
  }
  if (down) cluster_.start(*down);
  ASSERT_TRUE(eventually([&] { return runner.view().waiting == 0; }, 120s)) << runner.view().last_error;
  EXPECT_GE(kills, static_cast<int>(length / 20s));
  EXPECT_EQ(lost(count), std::vector<std::int64_t>{}) << "of " << count << " events, after " << kills << " kills";
  EXPECT_TRUE(in_order());
  EXPECT_EQ(runner.view().missed_wakeups, 0U);
  std::cout << count << " events, " << kills << " kills of the stream's leader, " << runner.view().delivered
            << " deliveries\n";
}

INSTANTIATE_TEST_SUITE_P(Servers, NatsLeaderKills, testing::Values(Case{true, NatsCluster::Login::creds}), name_of);

}  // namespace
}  // namespace driftd::test
