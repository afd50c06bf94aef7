// SPDX-License-Identifier: Apache-2.0
// A network between the sink and its broker that cuts connections while answers are on their way.
#include "support/cutting_relay.hpp"
#include "world.hpp"

namespace driftd::test {
namespace {

int port_of(const KafkaServer& server) { return std::stoi(server.address().substr(server.address().rfind(':') + 1)); }

/// A broker that clients reach only through a relay, for it tells them the relay's address.
struct CutOff {
  CutOff() : relay(1), server(options()) { relay.point_to(port_of(server)); }
  KafkaServer::Options options() const {
    KafkaServer::Options out;
    out.conf = {"advertised.listeners=PLAINTEXT://127.0.0.1:" + std::to_string(relay.port())};
    return out;
  }
  std::string address() const { return "127.0.0.1:" + std::to_string(relay.port()); }
  CuttingRelay relay;
  KafkaServer server;
};

class KafkaSinkChaos : public testing::TestWithParam<bool> {};

TEST_P(KafkaSinkChaos, AnswersThatAreCutCostNoEventAndNoOrder) {
  CutOff broker;
  auto with = at(broker.address(), "orders");
  with.partitions = 3;
  if (GetParam()) with.transactional_id = "edge-1";
  RelayRunner runner(kafka_sink(with), kEachMinute);
  std::int64_t n = 0;
  const auto more = [&](std::int64_t count) {
    for (const auto until = n + count; n < until; ++n) runner.add(event_of_topic(n + 1, n % 40));
  };
  more(50);
  ASSERT_TRUE(delivered(runner, 50)) << runner.view().last_error;
  for (int cut = 0; cut < 8; ++cut) {
    broker.relay.cut_after(1 + 40 * cut);  // somewhere in the next answers: the broker has what they are about
    more(100);
    const auto swallowed = [&] { return broker.relay.passed() >= 1 + 40 * cut; };
    ASSERT_TRUE(eventually(swallowed, std::chrono::seconds(30))) << cut;
    broker.relay.cut_after(-1);
    ASSERT_TRUE(delivered(runner, n - 50, std::chrono::seconds(60))) << runner.view().state << runner.view().last_error;
  }
  ASSERT_TRUE(eventually([&] { return runner.view().waiting == 0; }, std::chrono::seconds(60)));
  const auto records = topic_contents(broker.address(), "orders");
  EXPECT_EQ(missing(broker.address(), "orders", n), std::vector<std::int64_t>{});
  EXPECT_EQ(key_out_of_order(records), "");
  EXPECT_LE(records.size(), static_cast<std::size_t>(n) + 8 * 256U);
  EXPECT_EQ(runner.view().missed_wakeups, 0U);
  std::cout << records.size() << " records of " << n << " events after 8 cuts\n";
}
INSTANTIATE_TEST_SUITE_P(Cuts, KafkaSinkChaos, testing::Bool(),
                         [](const auto& info) { return info.param ? "Transactions" : "Plain"; });

}  // namespace
}  // namespace driftd::test
