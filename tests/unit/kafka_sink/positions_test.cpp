// SPDX-License-Identifier: Apache-2.0
#include "sinks/kafka/positions.hpp"

#include <gtest/gtest.h>

#include "sinks/kafka/failure_text.hpp"
#include "sinks/kafka/fencing.hpp"

namespace driftd::sinks {
namespace {

TEST(Positions, AnOffsetAtOrBelowAnEarlierOneOfItsPartitionIsNoAnswerOfAWholeTopic) {
  Positions positions;
  EXPECT_TRUE(positions.acked(0, 0, "a", 1));
  EXPECT_TRUE(positions.acked(1, 0, "b", 2)) << "each partition counts for itself";
  EXPECT_TRUE(positions.acked(0, 5, "c", 3));
  EXPECT_FALSE(positions.acked(0, 5, "d", 4));
  EXPECT_FALSE(positions.acked(0, 0, "e", 5));
  EXPECT_EQ(positions.all().at(0).last().id, "c");
}

TEST(Positions, NotesOfAnEarlierAgentAreReadAndWhatIsNotOursIsSkipped) {
  Positions written;
  written.acked(0, 0, "a-1", 1);
  written.acked(12, 41, "b-2", 2);
  written.promise(2);
  Positions read;
  read.parse(written.render() + "|x 1:1:y|7|" + "3 4:");
  ASSERT_TRUE(read.all().contains(0) && read.all().contains(12));
  EXPECT_EQ(read.all().at(12).last().stream_seq, 42U);
  EXPECT_EQ(read.all().at(12).last().id, "b-2");
  EXPECT_EQ(read.all().at(12).all().front().safe, 2);
  EXPECT_EQ(read.render(), written.render());
}

TEST(Positions, TheirTextIsBoundedHoweverManyPartitionsAndEventsThereAre) {
  const std::string id(37, 'i');
  for (const int partitions : {1, 16, 100, 1'000}) {
    Positions positions;
    positions.resize(partitions);
    for (std::int64_t event = 1; event < 200'000; ++event) {
      positions.acked(static_cast<std::int32_t>(event % partitions), event * 300, id, event);
      if (event % 997 == 0) positions.promise(event);
    }
    EXPECT_LE(positions.render().size(), partitions <= 90 ? 20'000U : 200U * static_cast<unsigned>(partitions))
        << partitions;
    EXPECT_EQ(positions.all().size(), static_cast<std::size_t>(partitions));
  }
}

TEST(Positions, APartitionThatLostEverythingBeginsAgain) {
  Positions positions;
  positions.acked(3, 100, "a", 1);
  positions.promise(1);
  positions.keep_oldest(3, 0);
  EXPECT_TRUE(positions.acked(3, 0, "a", 1));
}

TEST(Fencing, ThreeLossesWithinTenMinutesEndTheFightAndRareOnesDoNot) {
  const Fencing::Time start{};
  Fencing often;
  EXPECT_FALSE(often.lost(start));
  EXPECT_FALSE(often.lost(start + std::chrono::minutes(4)));
  EXPECT_TRUE(often.lost(start + std::chrono::minutes(9)));
  Fencing rarely;
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(rarely.lost(start + i * std::chrono::minutes(6)));
}

TEST(KafkaFailureText, NamesTheRemedyAndNoSecret) {
  KafkaSettings settings;
  settings.bootstrap_servers = {"h:1", "k:2"};
  settings.topic = "t";
  settings.sasl_password = "canary";
  EXPECT_EQ(describe_failure(RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, "no\ncanary here", settings),
            "Kafka at h:1, k:2, topic t: no [REDACTED] here; grant the account WRITE and DESCRIBE on the topic, and "
            "CREATE if the agent is to create it");
  settings.sasl_password = "E";  // part of the text that stands in its place
  EXPECT_EQ(shown("aEbE", settings), "a[REDACTED]b[REDACTED]");
}

}  // namespace
}  // namespace driftd::sinks
