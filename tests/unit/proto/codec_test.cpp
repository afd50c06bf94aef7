// SPDX-License-Identifier: Apache-2.0
#include "proto/codec.hpp"

#include <gtest/gtest.h>

#include "support/sink_events.hpp"

namespace driftd::proto {
namespace {

core::BackendEvent of_many_words(int words) {
  core::BackendEvent event = test::sample_event(1);
  for (int i = 0; i < words; ++i) {
    const std::string name = "k" + std::to_string((i * 7919) % 1000);
    event.metadata[name] = event.old_state->metadata[name] = event.new_state->metadata[name] = std::to_string(i);
  }
  return event;
}

const core::EventStamp kStamp{"id-1", 1, 1, 1'763'700'000'000'000'000};

TEST(Codec, AnEventHasTheSameBytesInEachAttempt) {
  const auto event = to_stored_event(of_many_words(40), kStamp);
  const auto first = cloudevent_json(event);
  ASSERT_TRUE(first) << first.error().message;
  for (int attempt = 0; attempt < 50; ++attempt) ASSERT_EQ(*cloudevent_json(event), *first);
}

TEST(Codec, TheMembersOfAMapAreSorted) {
  const auto json = to_json(to_stored_event(of_many_words(3), kStamp));  // k0, k919, k838 and namespace
  ASSERT_TRUE(json) << json.error().message;
  const auto at = [&json](const char* name) { return json->rfind(name); };
  EXPECT_NE(at("\"k0\""), std::string::npos) << *json;
  EXPECT_LT(at("\"k0\""), at("\"k838\"")) << *json;
  EXPECT_LT(at("\"k838\""), at("\"k919\"")) << *json;
  EXPECT_LT(at("\"k919\""), at("\"namespace\"")) << *json;
}

TEST(Codec, TheDetailsOfAnAgentEventAreSortedToo) {
  core::AgentEvent event;
  event.agent = "a";
  event.what = "gap";
  for (int i = 0; i < 30; ++i) event.details["d" + std::to_string((i * 37) % 100)] = "x";
  const auto stored = to_stored_event(event, kStamp);
  const auto first = to_json(stored);
  ASSERT_TRUE(first) << first.error().message;
  for (int attempt = 0; attempt < 50; ++attempt) ASSERT_EQ(*to_json(stored), *first);
}

TEST(Codec, AnEventThatIsTooLargeGetsNoStateThatItDidNotHave) {
  core::BackendEvent event = test::sample_event(1);
  event.old_state.reset();
  event.new_state->config_json = "{\"a\":\"" + std::string(70'000, 'x') + "\"}";
  const auto json = to_json(to_stored_event(event, kStamp));
  ASSERT_TRUE(json) << json.error().message;
  EXPECT_NE(json->find("\"truncated\":true"), std::string::npos) << *json;
  EXPECT_NE(json->find("\"new_state\""), std::string::npos) << *json;
  EXPECT_EQ(json->find("\"old_state\""), std::string::npos) << *json;
}

TEST(Codec, NamesAndNumbersAreThoseOfTheDocumentation) {
  const auto json = to_json(to_stored_event(test::sample_event(1), kStamp));
  ASSERT_TRUE(json);
  EXPECT_NE(json->find("\"backend_name\":\"orders-kafka\""), std::string::npos) << *json;
  EXPECT_NE(json->find("\"recorded_ns\":\"1763700000000000000\""), std::string::npos) << *json;
  EXPECT_NE(json->find("\"policy\":\"RECONCILIATION_POLICY_MANUAL\""), std::string::npos) << *json;
}

TEST(Codec, BytesThatAreNoEventAreCorrupt) {
  core::StoredEvent event = test::sample_stored(1);
  event.payload = "\xff\xff not an event";
  EXPECT_EQ(to_json(event).error().code, Code::corrupt);
}

}  // namespace
}  // namespace driftd::proto
