// SPDX-License-Identifier: Apache-2.0
// The shipped schema on values as Kafka sends them: spellings that Kafka treats as equal are not drift, and a different
// twin is.
#include <gtest/gtest.h>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/judge/diff.hpp"
#include "core/value/schema.hpp"

namespace driftd::kafka {
namespace {

/// Paths that differ, or `equal`.
std::string compared(const std::string& kind, const std::string& before, const std::string& after) {
  const auto all = nlohmann::json::parse(std::ifstream(std::string(DRIFTD_SOURCE_DIR) + "/plugins/kafka/schema.json"));
  const auto schema = core::KindSchema::parse(all.at("kinds").at(kind).dump());
  const auto a = core::parse(before), b = core::parse(after);
  if (!schema || !a || !b) return "unreadable";
  std::string out;
  for (const auto& change : core::diff(*a, *b, **schema, {}).changes) out += (out.empty() ? "" : " ") + change.path;
  return out.empty() ? "equal" : out;
}

std::string topic(const std::string& key, const std::string& before, const std::string& after) {
  const auto body = [&](const std::string& value) { return "{\"config\": {\"" + key + "\": " + value + "}}"; };
  return compared("topic", body(before), body(after));
}

TEST(KafkaSchema, NumbersAreComparedByValueAndSentinelsExactly) {
  EXPECT_EQ(topic("retention.ms", "\"60000\"", "\"060000\""), "equal");
  EXPECT_EQ(topic("retention.ms", "\"-1\"", "\"9223372036854775807\""), "config[\"retention.ms\"]");
  EXPECT_EQ(topic("flush.messages", "\"9223372036854775807\"", "\"9223372036854775806\""),
            "config[\"flush.messages\"]");
  EXPECT_EQ(topic("segment.bytes", "\"1048576\"", "\"01048576\""), "equal");
  EXPECT_EQ(topic("segment.bytes", "\"1048576\"", "\"1048577\""), "config[\"segment.bytes\"]");
  EXPECT_EQ(topic("min.cleanable.dirty.ratio", "\"0.5\"", "\"0.50\""), "equal");
}

TEST(KafkaSchema, PoliciesAreSetsAndFlagsAreTruths) {
  EXPECT_EQ(topic("cleanup.policy", R"(["compact", "delete"])", R"(["delete", "compact"])"), "equal");
  EXPECT_EQ(topic("cleanup.policy", R"(["compact", "delete"])", R"(["compact"])"), "config[\"cleanup.policy\"]");
  EXPECT_EQ(topic("preallocate", "\"true\"", "\"TRUE\""), "equal");
  EXPECT_EQ(topic("remote.storage.enable", "\"true\"", "\"false\""), "config[\"remote.storage.enable\"]");
}

TEST(KafkaSchema, ListenersOfABrokerAreASetOfEndpoints) {
  EXPECT_EQ(compared("broker", R"({"static": {"listeners": ["A://h:1", "B://h:2"]}})",
                     R"({"static": {"listeners": ["B://h:2", "A://h:1"]}})"),
            "equal");
  EXPECT_EQ(
      compared("broker", R"({"dynamic": {"log.retention.ms": "1"}})", R"({"dynamic": {"log.retention.ms": "2"}})"),
      "dynamic[\"log.retention.ms\"]");
  EXPECT_EQ(
      compared("cluster", R"({"bootstrap_servers": ["a:9092", "B:1"]})", R"({"bootstrap_servers": ["b:1", "a:9092"]})"),
      "equal");
}

}  // namespace
}  // namespace driftd::kafka
