// SPDX-License-Identifier: Apache-2.0
// Three brokers: their leaders die and move while events flow.
#include "world.hpp"

namespace driftd::test {
namespace {

TEST(KafkaSinkCluster, KilledAndStoppedLeadersCostNoEventAndNoOrder) {
  KafkaServer first;
  KafkaServer::Options options;
  options.join = &first;
  options.node = 2;
  KafkaServer second(options);
  options.node = 3;
  KafkaServer third(options);
  auto with = at(first.address(), "orders");
  with.bootstrap_servers = {second.address(), third.address(), first.address()};
  with.partitions = 6;
  with.replication_factor = 3;
  with.ack_wait = std::chrono::milliseconds(30'000);
  RelayRunner runner(kafka_sink(with), kEachMinute);
  std::int64_t n = 0;
  const auto more = [&](std::int64_t count) {
    for (const auto until = n + count; n < until; ++n) runner.add(event_of_topic(n + 1, n % 40));
  };
  more(200);
  ASSERT_TRUE(delivered(runner, 200)) << runner.view().last_error;
  for (KafkaServer* victim : {&second, &third}) {
    more(100);
    victim->kill();
    more(200);
    ASSERT_TRUE(delivered(runner, n, std::chrono::seconds(60))) << runner.view().state << runner.view().last_error;
    victim->start();
    more(100);
    victim->stop();  // hands its leadership over
    more(100);
    ASSERT_TRUE(delivered(runner, n, std::chrono::seconds(60))) << runner.view().state << runner.view().last_error;
    victim->start();
  }
  ASSERT_TRUE(delivered(runner, n));
  EXPECT_EQ(missing(first.address(), "orders", n), std::vector<std::int64_t>{});
  EXPECT_EQ(key_out_of_order(topic_contents(first.address(), "orders")), "");
  EXPECT_EQ(runner.view().missed_wakeups, 0U);
}

TEST(KafkaSinkCluster, APartitionWithoutALeaderDelaysOnlyItsOwnResources) {
  KafkaServer first;
  KafkaServer::Options options;
  options.join = &first;
  options.node = 2;
  KafkaServer second(options);
  first.topics({"--create", "--topic", "split", "--replica-assignment", "1,2"});
  auto with = at(first.address(), "split");
  with.ack_wait = std::chrono::milliseconds(2'000);
  RelayRunner runner(kafka_sink(with), std::chrono::milliseconds(1'000));
  add(runner, 1, 100);
  ASSERT_TRUE(delivered(runner, 100)) << runner.view().last_error;
  const auto in_first = [&] {
    const auto records = topic_contents(first.address(), "split");
    return std::count_if(records.begin(), records.end(), [](const auto& r) { return r.partition == 0; });
  };
  const auto before = in_first();
  second.stop();
  add(runner, 101, 300);
  EXPECT_TRUE(reports(runner, "has no leader that answers"));
  EXPECT_TRUE(eventually([&] { return runner.view().waiting < 150; }, std::chrono::seconds(60))) << runner.view().state;
  EXPECT_GT(runner.view().waiting, 50);
  second.start();
  ASSERT_TRUE(delivered(runner, 300, std::chrono::seconds(60))) << runner.view().state << runner.view().last_error;
  EXPECT_GT(in_first(), before);
  EXPECT_EQ(missing(first.address(), "split", 300), std::vector<std::int64_t>{});
}

}  // namespace
}  // namespace driftd::test
