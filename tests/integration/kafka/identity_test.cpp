// SPDX-License-Identifier: Apache-2.0
// Another cluster comes to stand behind the address: nothing of it is reported as the first one's.
#include "world.hpp"

#include <future>

#include "support/cutting_relay.hpp"

namespace driftd::test {
namespace {

using std::chrono::seconds;

constexpr const char* kMoved = "another cluster answers";

int port_of(const std::string& address) { return std::stoi(address.substr(address.rfind(':') + 1)); }

/// Two clusters whose brokers both advertise the address of one relay. A second relay leads to their SASL listeners.
class KafkaIdentity : public testing::Test {
 protected:
  KafkaIdentity() : one_(options_behind_relay("rack-of-one")), other_(options_behind_relay("rack-of-other")) {
    fill(other_, "other");
    fill(one_, "one");
  }
  KafkaServer::Options options_behind_relay(const std::string& rack) const {
    KafkaServer::Options out;
    out.secure = true;
    out.conf = {"advertised.listeners=PLAINTEXT://127.0.0.1:" + std::to_string(relay_.port()), "broker.rack=" + rack};
    return out;
  }
  void point_to(const KafkaServer& server) {
    relay_.point_to(port_of(server.address()));
    logins_.point_to(port_of(server.sasl_address()));
  }
  void fill(const KafkaServer& server, const std::string& name) {
    point_to(server);
    server.topics({"--create", "--topic", "topic-of-" + name});
    server.await_topic("topic-of-" + name, true);
    server.groups({"--group", "group-of-" + name, "--topic", "topic-of-" + name, "--reset-offsets", "--to-earliest",
                   "--execute"});
    // so that the list of ACLs is not empty
    server.acls({"--add", "--allow-principal", "User:any", "--operation", "Read", "--topic", "any"});
    server.scram_user("app", "canary-of-the-app");
  }
  ProviderProbe probe() const {
    return ProviderProbe("providers/kafka.so", {{"bootstrap_servers", "127.0.0.1:" + std::to_string(relay_.port())},
                                                {"exclude", {"quota", "acl"}},
                                                {"scram_hello",
                                                 {{"servers", "127.0.0.1:" + std::to_string(logins_.port())},
                                                  {"users", {{{"name", "app"}, {"mechanism", "SCRAM-SHA-256"}}}}}}});
  }
  /// Waits until a refresh reads this server's cluster.
  static bool reads(ProviderProbe& p, const KafkaServer& server) {
    return eventually([&] { return p.refresh().body("cluster", "cluster")["cluster_id"] == server.cluster_id(); },
                      seconds(30));
  }
  /// Waits until health tells this server's cluster as the identity.
  static bool sees(ProviderProbe& p, const KafkaServer& server) {
    return eventually([&] { return p.health().health.system_identity == server.cluster_id(); }, seconds(30));
  }

  CuttingRelay relay_{0}, logins_{0};
  KafkaServer one_, other_;
};

TEST_F(KafkaIdentity, WhatMovedBehindTheAddressIsNotToldBeforeHealthHasSeenIt) {
  auto p = probe();
  ASSERT_TRUE(sees(p, one_) && reads(p, one_));
  const auto before = p.refresh();
  point_to(other_);
  Collected moved;
  const auto refuses = [&](ProviderProbe& by) {
    return eventually(
               [&] {
                 moved = by.refresh(before.cursor);
                 return !moved.records.empty() || all_texts(moved).find(kMoved) != std::string::npos;
               },
               seconds(30)) &&
           moved.records.empty() && moved.status == DRIFTD_UNAVAILABLE;
  };
  EXPECT_TRUE(refuses(p)) << all_texts(moved);
  EXPECT_TRUE(refuses(p)) << "the second time, too: " << all_texts(moved);
  const auto read = p.read({{"topic", "topic-of-one"}});
  EXPECT_EQ(read.status, DRIFTD_UNAVAILABLE);
  EXPECT_EQ(read.diagnostic(DRIFTD_NOT_FOUND), nullptr) << "a topic that another cluster does not have is not gone";
  auto restarted = probe();
  EXPECT_TRUE(refuses(restarted)) << "the cursor names its cluster: " << all_texts(moved);
  ASSERT_TRUE(sees(p, other_));
  ASSERT_TRUE(reads(p, other_));
  EXPECT_NE(p.refresh().find("topic", "topic-of-other"), nullptr);
}

TEST_F(KafkaIdentity, SaltOfTheOtherClusterIsForgottenWithIt) {
  auto p = probe();
  ASSERT_TRUE(sees(p, one_) && reads(p, one_));
  const auto before = p.refresh();
  ASSERT_FALSE(before.body("scram_user", "app/SCRAM-SHA-256")["salt"].empty()) << all_texts(before);
  point_to(other_);
  auto restarted = probe();
  Collected moved;
  ASSERT_TRUE(
      eventually([&] { return all_texts(moved = restarted.refresh(before.cursor)).find(kMoved) != std::string::npos; },
                 seconds(30)))
      << all_texts(moved);
  EXPECT_GT(logins_.passed(), 0);
  point_to(one_);
  ASSERT_TRUE(reads(restarted, one_));
  EXPECT_EQ(restarted.refresh().body("scram_user", "app/SCRAM-SHA-256"),
            before.body("scram_user", "app/SCRAM-SHA-256"));
}

TEST_F(KafkaIdentity, RefreshDuringWhichTheClusterChangedTellsNothingOfTheOther) {
  auto p = probe();
  ASSERT_TRUE(sees(p, one_) && reads(p, one_));
  relay_.cut_after(-1);
  ASSERT_EQ(p.refresh().status, DRIFTD_OK);
  const long long bytes = relay_.passed();
  for (int part = 1; part < 8; ++part) {
    const long long limit = bytes * part / 8;
    relay_.cut_after(limit);
    auto move = std::async(std::launch::async, [&] {
      if (!eventually([&] { return relay_.passed() >= limit; }, seconds(30))) return false;
      point_to(other_);
      relay_.cut_after(-1);
      return true;
    });
    const auto seen = p.refresh();
    EXPECT_TRUE(move.get()) << part;
    EXPECT_EQ(all_texts(seen).find("-of-other"), std::string::npos) << part << ": " << all_texts(seen);
    for (const std::string kind : {"topic", "group"}) {
      EXPECT_TRUE(seen.complete.count(kind) == 0 || seen.find(kind, kind + "-of-one") != nullptr)
          << part << ": the kind is complete without the first cluster's " << kind;
    }
    point_to(one_);
    ASSERT_TRUE(reads(p, one_)) << part;
  }
}

}  // namespace
}  // namespace driftd::test
