// SPDX-License-Identifier: Apache-2.0
#include "world.hpp"

namespace driftd::test {
namespace {

using testing::HasSubstr;

class KafkaSinkTransactions : public SharedBroker {
 protected:
  sinks::KafkaSettings transactional() const {
    auto with = settings();
    with.transactional_id = topic();
    return with;
  }
};

TEST_F(KafkaSinkTransactions, EventsAreVisibleOnceTheirTransactionIsCommitted) {
  RelayRunner runner(kafka_sink(transactional()), kEachMinute);
  for (std::int64_t n = 1; n <= 1'000; ++n) runner.add(event_of_topic(n, n % 50));
  ASSERT_TRUE(delivered(runner, 1'000)) << runner.view().last_error;
  const auto got = records();
  EXPECT_EQ(got.size(), 1'000U);
  EXPECT_EQ(key_out_of_order(got), "");
  // each transaction leaves a marker, which takes an offset
  EXPECT_GT(got.back().offset, 999);
}

TEST_F(KafkaSinkTransactions, AnEventAboveTheMaximumIsADeadLetterAndItsTransactionIsRepeatedWithoutIt) {
  server().topics({"--create", "--topic", topic(), "--config", "max.message.bytes=20000"});
  RelayRunner runner(kafka_sink(transactional()), kEachMinute);
  for (std::int64_t n = 1; n <= 300; ++n) {
    core::StoredEvent event = sample_stored(n);
    if (n % 100 == 50) event.payload += std::string(30'000, 'x');
    runner.add(std::move(event));
  }
  ASSERT_TRUE(delivered(runner, 297)) << runner.view().last_error;
  EXPECT_TRUE(eventually([&] { return runner.view().dead == 3; }));
  EXPECT_EQ(missing(server().address(), topic(), 300), (std::vector<std::int64_t>{50, 150, 250}));
  EXPECT_EQ(records().size(), 297U) << "an aborted transaction is not visible";
}

TEST_F(KafkaSinkTransactions, AKilledBrokerCostsNoEventAndNoOrder) {
  RelayRunner runner(kafka_sink(transactional()), kEachMinute);
  for (std::int64_t n = 1; n <= 600; ++n) runner.add(event_of_topic(n, n % 20));
  ASSERT_TRUE(delivered(runner, 100)) << runner.view().last_error;
  server().kill();
  for (std::int64_t n = 601; n <= 1'200; ++n) runner.add(event_of_topic(n, n % 20));
  server().start();
  ASSERT_TRUE(delivered(runner, 1'200, std::chrono::seconds(60))) << runner.view().state << runner.view().last_error;
  EXPECT_EQ(missing(server().address(), topic(), 1'200), std::vector<std::int64_t>{});
  EXPECT_EQ(key_out_of_order(records()), "");
}

TEST_F(KafkaSinkTransactions, OfTwoSinksWithOneIdOneGivesUpLoudlyAndTheOtherGoesOn) {
  auto with = transactional();
  RelayRunner first(kafka_sink(with), kEachMinute);
  first.add(sample_stored(1));
  ASSERT_TRUE(delivered(first, 1)) << first.view().last_error;
  RelayRunner second(kafka_sink(with), kEachMinute);
  const auto gave_up = [](RelayRunner& runner) {
    return runner.view().state.find("another producer uses transactional_id") != std::string::npos &&
           runner.view().state.find("disabled") != std::string::npos;
  };
  std::int64_t n = 1;
  const auto one_gave_up = [&] {
    ++n;
    first.add(sample_stored(n));
    second.add(sample_stored(n));
    return gave_up(first) || gave_up(second);
  };
  ASSERT_TRUE(eventually(one_gave_up, std::chrono::seconds(60)))
      << first.view().state << first.view().last_error << "\n"
      << second.view().state << second.view().last_error;
  RelayRunner& other = gave_up(first) ? second : first;
  const auto before = other.view().delivered;
  other.add(sample_stored(n + 1));
  EXPECT_TRUE(eventually([&] { return other.view().delivered > before; }, std::chrono::seconds(40)))
      << other.view().state << other.view().last_error;
  EXPECT_NE(gave_up(first), gave_up(second));
}

}  // namespace
}  // namespace driftd::test
