// SPDX-License-Identifier: Apache-2.0
#include "world.hpp"

namespace driftd::test {
namespace {

using testing::HasSubstr;
using KafkaSink = SharedBroker;

TEST_F(KafkaSink, AnEventIsARecordOfTheCloudEventsBinding) {
  RelayRunner runner(kafka_sink(settings()), kEachMinute);
  runner.add(sample_stored(1));
  ASSERT_TRUE(delivered(runner, 1)) << runner.view().last_error;
  const auto event = sample_stored(1);
  const auto got = records();
  ASSERT_EQ(got.size(), 1U);
  EXPECT_EQ(got[0].key, event.key);
  EXPECT_EQ(got[0].value, event.payload);
  const std::map<std::string, std::string> expected = {{"content-type", "application/protobuf"},
                                                       {"ce_specversion", "1.0"},
                                                       {"ce_id", event.stamp.id},
                                                       {"ce_source", "//default/driftd/kafka"},
                                                       {"ce_type", "io.driftd.backend.config.updated.v1"},
                                                       {"ce_subject", "orders-kafka/topic/t1"},
                                                       {"ce_time", "2025-11-21T04:40:00.000Z"},
                                                       {"ce_partitionkey", event.key},
                                                       {"ce_driftseq", "1"}};
  EXPECT_EQ(got[0].headers, expected);
}

TEST_F(KafkaSink, AnAbsentTopicIsMadeAsTheSettingsSay) {
  auto with = settings();
  with.partitions = 7;
  with.replication_factor = 1;
  with.retention = std::chrono::hours(36);
  RelayRunner runner(kafka_sink(with), kEachMinute);
  runner.add(sample_stored(1));
  ASSERT_TRUE(delivered(runner, 1)) << runner.view().last_error;
  EXPECT_THAT(description(), HasSubstr("PartitionCount: 7"));
  EXPECT_THAT(description(), HasSubstr("retention.ms=129600000"));
  EXPECT_EQ(runner.view().state, "connected, topic " + topic());
}

TEST_F(KafkaSink, WhatDiffersInAnExistingTopicIsAWarningAndIsNotChanged) {
  server().topics({"--create", "--topic", topic(), "--partitions", "2", "--config", "retention.ms=3600000", "--config",
                   "cleanup.policy=compact"});
  auto with = settings();
  with.partitions = 3;
  with.replication_factor = 2;
  with.retention = std::chrono::hours(2);
  RelayRunner runner(kafka_sink(with), kEachMinute);
  runner.add(sample_stored(1));
  ASSERT_TRUE(delivered(runner, 1)) << runner.view().last_error;
  for (const char* part : {"its number of partitions is 2, the sink's setting is 3", "its replication factor is 1",
                           "its retention.ms is 3600000, the sink's setting is 7200000", "its cleanup.policy compacts"})
    EXPECT_THAT(runner.view().state, HasSubstr(part));
  EXPECT_THAT(description(), HasSubstr("PartitionCount: 2"));
  EXPECT_THAT(description(), HasSubstr("retention.ms=3600000"));
}

TEST_F(KafkaSink, WithoutCreateTopicAnAbsentTopicIsAnErrorUntilSomebodyMakesIt) {
  auto with = settings();
  with.create_topic = false;
  RelayRunner runner(kafka_sink(with), kEachMinute);
  runner.add(sample_stored(1));
  ASSERT_TRUE(reports(runner, "there is no such topic: create it, or leave it to the agent with create_topic: true"));
  EXPECT_THAT(server().topics({"--list"}), testing::Not(HasSubstr(topic())));
  server().topics({"--create", "--topic", topic()});
  EXPECT_TRUE(delivered(runner, 1)) << runner.view().last_error;
}

TEST_F(KafkaSink, AnEventAboveTheTopicsMaximumIsADeadLetterAndTheOthersGoOn) {
  server().topics({"--create", "--topic", topic(), "--config", "max.message.bytes=20000"});
  RelayRunner runner(kafka_sink(settings()), kEachMinute);
  for (std::int64_t n = 1; n <= 300; ++n) {
    core::StoredEvent event = sample_stored(n);
    if (n % 100 == 50) event.payload += std::string(30'000, 'x');
    runner.add(std::move(event));
  }
  ASSERT_TRUE(delivered(runner, 297)) << runner.view().last_error;
  EXPECT_TRUE(eventually([&] { return runner.view().dead == 3; }));
  EXPECT_THAT(runner.view().last_error, HasSubstr("raise max.message.bytes of the topic"));
  EXPECT_EQ(missing(server().address(), topic(), 300), (std::vector<std::int64_t>{50, 150, 250}));
}

TEST_F(KafkaSink, StructuredJsonHasTheEventInItsValue) {
  auto with = settings();
  with.json = true;
  RelayRunner runner(kafka_sink(with), kEachMinute);
  runner.add(sample_stored(1));
  ASSERT_TRUE(delivered(runner, 1)) << runner.view().last_error;
  const auto got = records();
  ASSERT_EQ(got.size(), 1U);
  EXPECT_EQ(got[0].header("content-type"), "application/cloudevents+json; charset=UTF-8");
  EXPECT_EQ(got[0].value, proto::cloudevent_json(sample_stored(1)).value());
}

TEST_F(KafkaSink, MorePartitionsWhileEventsFlowAreReportedAndLoseNothing) {
  server().topics({"--create", "--topic", topic(), "--partitions", "1"});
  RelayRunner runner(kafka_sink(settings()));  // checks three times a second
  add(runner, 1, 200);
  ASSERT_TRUE(delivered(runner, 200)) << runner.view().last_error;
  server().topics({"--alter", "--topic", topic(), "--partitions", "4"});
  const auto spread = [] {
    std::set<std::int32_t> used;
    for (const auto& record : records()) used.insert(record.partition);
    return used.size() == 4;
  };
  std::int64_t n = 200;
  EXPECT_TRUE(eventually([&] { return runner.add(sample_stored(++n)), spread(); }, std::chrono::seconds(30)));
  ASSERT_TRUE(delivered(runner, n));
  EXPECT_EQ(missing(server().address(), topic(), n), std::vector<std::int64_t>{});
}

TEST_F(KafkaSink, EventsOfOneResourceKeepTheirOrderThroughAKilledBroker) {
  RelayRunner runner(kafka_sink(settings()), kEachMinute);
  for (std::int64_t n = 1; n <= 600; ++n) runner.add(event_of_topic(n, n % 20));
  ASSERT_TRUE(delivered(runner, 100)) << runner.view().last_error;
  server().kill();
  for (std::int64_t n = 601; n <= 1'200; ++n) runner.add(event_of_topic(n, n % 20));
  server().start();
  ASSERT_TRUE(delivered(runner, 1'200)) << runner.view().state << runner.view().last_error;
  EXPECT_EQ(missing(server().address(), topic(), 1'200), std::vector<std::int64_t>{});
  EXPECT_EQ(key_out_of_order(records()), "");
  EXPECT_LE(records().size(), 1'200U + 256U);
  EXPECT_EQ(runner.view().missed_wakeups, 0U);
}

TEST_F(KafkaSink, EventsThatWaitWhileAllBrokersAreDownArriveSoonAfterTheirReturn) {
  RelayRunner runner(kafka_sink(settings()), kEachMinute);
  add(runner, 1, 10);
  ASSERT_TRUE(delivered(runner, 10)) << runner.view().last_error;
  server().stop();
  add(runner, 11, 400);
  ASSERT_TRUE(eventually([&] { return runner.view().state.rfind("circuit open", 0) == 0; })) << runner.view().state;
  server().start();
  EXPECT_TRUE(delivered(runner, 400, std::chrono::seconds(10))) << runner.view().state << runner.view().last_error;
  EXPECT_EQ(missing(server().address(), topic(), 400), std::vector<std::int64_t>{});
}

}  // namespace
}  // namespace driftd::test
