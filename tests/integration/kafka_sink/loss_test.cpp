// SPDX-License-Identifier: Apache-2.0
// Topics that lose what they had acknowledged, and topics that only forget what is old.
#include "world.hpp"

namespace driftd::test {
namespace {

using KafkaSinkLoss = SharedBroker;

MemoryOutbox copy_of(RelayRunner& runner) {
  return runner.on_core([&] { return runner.outbox; });
}

/// Delivers `count` events and returns the outbox as an agent leaves it that stops, with everything settled. An
/// acknowledgement that came after a save passed its event leaves an exception until the next save.
MemoryOutbox first_run(const sinks::KafkaSettings& settings, std::int64_t count) {
  RelayRunner runner(kafka_sink(settings), kEachMinute);
  add(runner, 1, count);
  EXPECT_TRUE(delivered(runner, count)) << runner.view().last_error;
  const auto is_settled = [&] {
    const auto& cursor = runner.outbox.cursors["s"];
    return cursor.low_water == count && cursor.exceptions.empty();
  };
  EXPECT_TRUE(eventually([&] { return runner.on_core(is_settled); }));
  return copy_of(runner);
}

/// A sink that lives meanwhile must not create topics (`create_topic`): it would be the one that makes the topic again
/// if its regular check comes before the tool has.
void make_again(const KafkaServer& server, const std::string& topic, const std::string& partitions) {
  server.topics({"--delete", "--topic", topic});
  server.await_topic(topic, false);
  server.topics({"--create", "--topic", topic, "--partitions", partitions});
}

/// Settings of a sink that leaves the topic to the test, which makes it.
sinks::KafkaSettings for_a_topic_of_the_test(const KafkaServer& server, sinks::KafkaSettings settings) {
  settings.create_topic = false;
  server.topics({"--create", "--topic", settings.topic, "--partitions", "1"});
  return settings;
}

TEST_F(KafkaSinkLoss, ATopicThatIsMadeAgainUnderALivingSinkGetsEverythingAgain) {
  RelayRunner runner(kafka_sink(for_a_topic_of_the_test(server(), settings())), kEachMinute);
  add(runner, 1, 300);
  ASSERT_TRUE(delivered(runner, 300)) << runner.view().last_error;
  make_again(server(), topic(), "1");
  runner.add(sample_stored(301));
  EXPECT_TRUE(all_there(server().address(), topic(), runner, 301));
}

TEST_F(KafkaSinkLoss, ATopicThatIsMadeAgainWhileTheAgentIsDownGetsEverythingAgain) {
  const MemoryOutbox before = first_run(settings(), 200);
  make_again(server(), topic(), "1");
  RelayRunner runner(kafka_sink(settings()), kEachMinute, before);
  EXPECT_TRUE(all_there(server().address(), topic(), runner, 200));
}

TEST_F(KafkaSinkLoss, RecordsOfSomebodyElseInItsPlaceDoNotHideTheLoss) {
  const MemoryOutbox before = first_run(settings(), 200);
  make_again(server(), topic(), "1");
  produce_other_records(server().address(), topic(), 1, 500);  // more than there were
  RelayRunner runner(kafka_sink(settings()), kEachMinute, before);
  EXPECT_TRUE(all_there(server().address(), topic(), runner, 200));
}

TEST_F(KafkaSinkLoss, ALossIsFoundWithoutNewEventsByTheRegularCheck) {
  RelayRunner runner(kafka_sink(for_a_topic_of_the_test(server(), settings())));
  add(runner, 1, 200);
  ASSERT_TRUE(delivered(runner, 200)) << runner.view().last_error;
  make_again(server(), topic(), "1");
  EXPECT_TRUE(all_there(server().address(), topic(), runner, 200));
}

TEST_F(KafkaSinkLoss, ATopicThatIsDeletedUnderALivingSinkIsMadeAgainByItWithEverything) {
  RelayRunner runner(kafka_sink(settings()));
  add(runner, 1, 200);
  ASSERT_TRUE(delivered(runner, 200)) << runner.view().last_error;
  server().topics({"--delete", "--topic", topic()});
  ASSERT_TRUE(delivered(runner, 400)) << runner.view().last_error;  // before, the old topic may still be listed
  EXPECT_TRUE(all_there(server().address(), topic(), runner, 200));
}

TEST_F(KafkaSinkLoss, ATopicWithFewerPartitionsThanBeforeGetsEverythingAgain) {
  auto with = settings();
  with.partitions = 6;
  const MemoryOutbox before = first_run(with, 200);
  make_again(server(), topic(), "2");
  RelayRunner runner(kafka_sink(with), kEachMinute, before);
  EXPECT_TRUE(all_there(server().address(), topic(), runner, 200));
}

TEST_F(KafkaSinkLoss, AnotherTopicInTheSettingsGetsEverythingThatIsStored) {
  const MemoryOutbox before = first_run(settings(), 100);
  const std::string other = topic("-other");
  RelayRunner runner(kafka_sink(at(server().address(), other)), kEachMinute, before);
  EXPECT_TRUE(all_there(server().address(), other, runner, 100));
}

TEST_F(KafkaSinkLoss, WhatExpiredIsNotSentAgain) {
  const MemoryOutbox before = first_run(settings(), 200);
  const TempDir dir;
  const std::string file = dir.write(
      "offsets.json", R"({"version":1,"partitions":[{"topic":")" + topic() + R"(","partition":0,"offset":-1}]})");
  const Output out = kafka_tool("4.0.0", "org.apache.kafka.tools.DeleteRecordsCommand",
                                {"--bootstrap-server", server().address(), "--offset-json-file", file});
  ASSERT_EQ(out.code, 0) << out.out;
  RelayRunner runner(kafka_sink(settings()), kEachMinute, before);
  runner.add(sample_stored(201));
  ASSERT_TRUE(delivered(runner, 1)) << runner.view().last_error;
  ASSERT_EQ(records().size(), 1U);
  EXPECT_EQ(records()[0].header("ce_id"), sample_stored(201).stamp.id);
}

TEST_F(KafkaSinkLoss, ARestartOfTheAgentSendsNothingTwice) {
  auto with = settings();
  with.partitions = 5;
  const MemoryOutbox before = first_run(with, 500);
  RelayRunner runner(kafka_sink(with), kEachMinute, before);
  runner.add(sample_stored(501));
  ASSERT_TRUE(delivered(runner, 1)) << runner.view().last_error;
  EXPECT_EQ(records().size(), 501U);
}

TEST_F(KafkaSinkLoss, ACompactedTopicThatDroppedARecordIsNotALoss) {
  server().topics({"--create", "--topic", topic(), "--config", "cleanup.policy=compact", "--config", "segment.ms=100",
                   "--config", "min.cleanable.dirty.ratio=0.0", "--config", "max.compaction.lag.ms=100"});
  RelayRunner runner(kafka_sink(settings()));
  for (std::int64_t n = 1; n <= 100; ++n) runner.add(event_of_topic(n, 1));
  ASSERT_TRUE(delivered(runner, 100)) << runner.view().last_error;
  std::int64_t n = 100;  // the active segment is never compacted: something must follow
  const auto compacted = [&] {
    return runner.add(event_of_topic(++n, 1)), records().size() < static_cast<std::size_t>(n) / 2;
  };
  ASSERT_TRUE(eventually(compacted, std::chrono::seconds(60)));
  ASSERT_TRUE(delivered(runner, n));
  EXPECT_EQ(runner.view().delivered, n) << "a rewind would deliver again";
}

}  // namespace
}  // namespace driftd::test
