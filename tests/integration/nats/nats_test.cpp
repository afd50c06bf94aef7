// SPDX-License-Identifier: Apache-2.0
// What the sink stores in JetStream, who receives it, and what it stores again after the server was killed or restored.
#include <gtest/gtest.h>
#include <set>

#include "bus.hpp"

namespace driftd::test {
namespace {

TEST(NatsSinkTest, AnEventIsStoredUnderItsSubjectAndBothViewsWithBareProtobufAndCloudEventsHeaders) {
  NatsServer server;
  RelayRunner runner(nats_sink(at(server)));
  const auto event = sample_stored(1, "credentials.rotated", core::ChangeType::credential_rotated);
  runner.add(event);
  ASSERT_TRUE(delivered(runner, 1)) << runner.view().last_error;
  const auto messages = stream_contents(server.url(), "DRIFT");
  ASSERT_EQ(messages.size(), 3U);
  std::map<std::string, std::string> by_subject;
  for (const auto& message : messages) {
    by_subject[message.subject] = message.id;
    EXPECT_EQ(message.body, event.payload);
    EXPECT_EQ(message.ce_id, event.stamp.id);
  }
  EXPECT_EQ(by_subject["backend.orders-kafka.credentials.rotated"], event.stamp.id);
  EXPECT_EQ(by_subject["backend.type.kafka.credentials.rotated"], event.stamp.id + "_t");
  EXPECT_EQ(by_subject["backend.source.kubernetes.credentials.rotated"], event.stamp.id + "_s");
  std::map<std::string, std::string> headers(messages[0].headers.begin(), messages[0].headers.end());
  EXPECT_EQ(headers["ce-specversion"], "1.0");
  EXPECT_EQ(headers["ce-source"], "//default/driftd/kafka");
  EXPECT_EQ(headers["ce-type"], "io.driftd.backend.credentials.rotated.v1");
  EXPECT_EQ(headers["ce-subject"], "orders-kafka/topic/t1");
  EXPECT_EQ(headers["ce-datacontenttype"], "application/protobuf");
}

TEST(NatsSinkTest, ViewsCanBeSwitchedOff) {
  NatsServer server;
  auto settings = at(server);
  settings.views = false;
  RelayRunner runner(nats_sink(settings));
  runner.add(sample_stored(1));
  ASSERT_TRUE(delivered(runner, 1)) << runner.view().last_error;
  EXPECT_EQ(stream_contents(server.url(), "DRIFT").size(), 1U);
}

TEST(NatsSinkTest, TheRfcsPrintedSubscriptionsReceiveTheirs) {
  NatsServer server;
  NatsSubscriber rotated(server.url(), "backend.*.credentials.rotated");
  NatsSubscriber health(server.url(), "backend.*.health.changed");
  NatsSubscriber one_token(server.url(), "backend.orders-kafka.*");
  NatsSubscriber all(server.url(), "backend.orders-kafka.>");
  RelayRunner runner(nats_sink(at(server)));
  add_all_changes(runner);
  ASSERT_TRUE(delivered(runner, 8)) << runner.view().last_error;
  const auto subjects = [](const NatsSubscriber& subscriber) {
    std::set<std::string> out;
    for (const auto& message : subscriber.received()) out.insert(message.subject);
    return out;
  };
  using Subjects = std::set<std::string>;
  const auto receives = [&subjects](const NatsSubscriber& subscriber, const Subjects& expected) {
    EXPECT_TRUE(eventually([&] { return subjects(subscriber) == expected; }))
        << testing::PrintToString(subjects(subscriber));
  };
  receives(rotated, {"backend.orders-kafka.credentials.rotated"});
  receives(health, {"backend.orders-kafka.health.changed"});
  receives(one_token, {"backend.orders-kafka.created", "backend.orders-kafka.updated", "backend.orders-kafka.deleted"});
  EXPECT_TRUE(eventually([&] { return all.received().size() == 8; }));
}

TEST(NatsSinkTest, AServerKilledAndRestartedInMidStreamLosesNothingAndNoIdIsStoredTwice) {
  NatsServer server;
  auto settings = at(server);
  settings.views = false;
  RelayRunner runner(nats_sink(settings));
  constexpr int kEvents = 3'000;
  for (int i = 1; i <= kEvents; ++i) {
    if (i % 1'000 == 0) {
      ASSERT_TRUE(delivered(runner, i / 2));
      server.sigkill();
      server.start();
    }
    runner.add(sample_stored(i));
  }
  ASSERT_TRUE(eventually(
      [&] {
        const auto ids = canonical_ids(stream_contents(server.url(), "DRIFT"));
        return std::set<std::string>(ids.begin(), ids.end()).size() == kEvents;
      },
      std::chrono::seconds(60)))
      << runner.view().state << " " << runner.view().last_error;
  const auto ids = canonical_ids(stream_contents(server.url(), "DRIFT"));
  EXPECT_EQ(ids.size(), static_cast<std::size_t>(kEvents))
      << "the duplicate window of the stream drops a second message of one id";
}

TEST(NatsSinkTest, AStreamThatWasWipedGetsEverythingAgain) {
  NatsServer server;
  auto settings = at(server);
  settings.views = false;
  RelayRunner runner(nats_sink(settings));
  for (int i = 1; i <= 600; ++i) runner.add(sample_stored(i));
  ASSERT_TRUE(delivered(runner, 600)) << runner.view().last_error;
  server.sigkill();
  server.wipe();
  server.start();
  ASSERT_TRUE(delivered(runner, 1'200)) << runner.view().state << " " << runner.view().last_error;
  EXPECT_EQ(canonical_ids(stream_contents(server.url(), "DRIFT")).size(), 600U);
}

TEST(NatsSinkTest, AStreamThatWentBackwardsAndWasWrittenBySomebodyElseGetsWhatItLostAgain) {
  NatsServer server;
  auto settings = at(server);
  settings.views = false;
  RelayRunner runner(nats_sink(settings));
  for (int i = 1; i <= 300; ++i) runner.add(sample_stored(i));
  ASSERT_TRUE(delivered(runner, 300)) << runner.view().last_error;
  server.stop();
  server.keep();
  server.start();
  for (int i = 301; i <= 700; ++i) runner.add(sample_stored(i));
  ASSERT_TRUE(delivered(runner, 700)) << runner.view().last_error;
  server.sigkill();
  server.put_back();  // a restored backup, which has our first 300 messages
  // messages of others take the sequence numbers of our other 400
  server.intrude("backend.of-others.created", 500);
  server.start();
  EXPECT_TRUE(eventually(
      [&] {
        const auto ids = canonical_ids(stream_contents(server.url(), "DRIFT"));
        return std::set<std::string>(ids.begin(), ids.end()).size() >= 700U;
      },
      std::chrono::seconds(40)))
      << runner.view().state << " " << runner.view().last_error;
}

TEST(NatsSinkTest, AServerThatComesLaterGetsWhatWasCommittedBefore) {
  NatsServer server;
  server.stop();
  RelayRunner runner(nats_sink(at(server)));
  runner.add(sample_stored(1));
  ASSERT_TRUE(eventually([&] { return runner.view().state.rfind("circuit open", 0) == 0; }));
  server.start();
  EXPECT_TRUE(delivered(runner, 1)) << runner.view().last_error;
}

TEST(NatsSinkTest, AServerThatDiesIsNamedAsNotConnected) {
  NatsServer server;
  RelayRunner runner(nats_sink(at(server)));
  runner.add(sample_stored(1));
  ASSERT_TRUE(delivered(runner, 1)) << runner.view().last_error;
  server.sigkill();
  runner.add(sample_stored(2));
  EXPECT_TRUE(eventually([&] { return runner.view().last_error.find("not connected") != std::string::npos; }))
      << runner.view().last_error;
  EXPECT_EQ(runner.view().last_error.find("Buffer"), std::string::npos) << runner.view().last_error;
}

TEST(NatsSinkTest, CoreNatsDeliversWithoutAStream) {
  NatsServer server;
  NatsSubscriber all(server.url(), "backend.orders-kafka.>");
  auto settings = at(server);
  settings.jetstream = false;
  RelayRunner runner(nats_sink(settings));
  for (int i = 1; i <= 100; ++i) runner.add(sample_stored(i));
  EXPECT_TRUE(eventually([&] { return all.received().size() == 100; })) << runner.view().last_error;
}

TEST(NatsSinkTest, AnErrorNamesTheServerWithoutItsPassword) {
  NatsServer server;
  server.stop();
  sinks::NatsSettings settings = at(server);
  settings.servers = {"nats://agent:canary-password@127.0.0.1:" + std::to_string(server.port())};
  RelayRunner runner(nats_sink(settings));
  ASSERT_TRUE(eventually([&] { return !runner.view().last_error.empty(); }));
  EXPECT_NE(runner.view().last_error.find("127.0.0.1:" + std::to_string(server.port())), std::string::npos);
  EXPECT_EQ(runner.view().last_error.find("canary"), std::string::npos);
}

}  // namespace
}  // namespace driftd::test
