// SPDX-License-Identifier: Apache-2.0
// What a sink with `events: digests_only` gets.
#include <gmock/gmock.h>

#include "driftd/v1/event.pb.h"
#include "proto/codec.hpp"
#include "proto/digests.hpp"

namespace driftd::proto {
namespace {

using testing::HasSubstr;
using testing::Not;

core::StoredEvent event(const std::string& from, const std::string& to) {
  core::BackendEvent out;
  out.backend_uid = "u1";
  out.backend_name = "orders";
  out.resource = core::ResourceId{"topic", "t"};
  out.changes = {{"motto", core::ChangeClass::config, from, to, false},
                 {"p", core::ChangeClass::credential, "\"x\"", "\"y\"", true}};
  const auto state = [](const std::string& motto) {
    return core::BackendSnapshot{
        "orders",
        "kafka",
        "h:1",
        R"({"name":"orders","settings":{"a":["canary-setting"]},"resource":{"kind":"topic","id":"t","body":{"list":[{"motto":)" +
            motto + R"(}],"p":"[REDACTED]"}}})",
        {},
        {}};
  };
  out.old_state = state(from);
  out.new_state = state(to);
  return to_stored_event(out, {"e1", 1, 1, 1});
}

std::string shown(const core::StoredEvent& one, const Key& key = {7}) {
  return to_json(digests_only(one, key).value()).value();
}

TEST(DigestsOnly, NoValueIsLeftAndEverythingElseIs) {
  const std::string json = shown(event("\"canary-old\"", "\"canary-new\""));
  EXPECT_THAT(json, Not(HasSubstr("canary")));
  for (const char* kept : {"motto", "[REDACTED]", "digest:", "orders", "h:1", "\\\"kind\\\":\\\"topic\\\""})
    EXPECT_THAT(json, HasSubstr(kept));
}

TEST(DigestsOnly, SettingsUnderTheBackendsTypeAreValuesToo) {
  for (const char* type : {"kafka", "labels", "name"}) {
    core::BackendEvent out;
    out.backend_name = "orders";
    const std::string config = std::string("{\"") + type + R"(":{"brokers":["canary:9092"],"tls":{"ca":"canary"}}})";
    out.new_state = core::BackendSnapshot{"orders", type, "h:1", config, {}, {}};
    const std::string json = shown(to_stored_event(out, {"e1", 1, 1, 1}));
    EXPECT_THAT(json, Not(HasSubstr("canary"))) << type;
    EXPECT_THAT(json, HasSubstr("brokers")) << type;
  }
}

TEST(DigestsOnly, EqualValuesAreEqualUnderOneKeyOnly) {
  const auto one = event("\"a\"", "\"b\"");
  EXPECT_EQ(shown(one), shown(one));
  EXPECT_NE(shown(one), shown(one, {8}));
  EXPECT_NE(shown(one), shown(event("\"a\"", "\"c\"")));
}

/// The SHA-256 that stands for a long state would let a receiver test guesses of the state without the sink's key.
TEST(DigestsOnly, TheHashOfALongStateIsUnderTheKeyToo) {
  const std::string filler(70'000, 'x');
  const auto one = event("\"a" + filler + "\"", "\"b" + filler + "\"");
  v1::BackendChangeEvent before, after;
  ASSERT_TRUE(before.ParseFromString(one.payload));
  ASSERT_TRUE(before.truncated());
  ASSERT_THAT(before.new_state().config_json(), HasSubstr("sha256"));
  ASSERT_TRUE(after.ParseFromString(digests_only(one, {7}).value().payload));
  EXPECT_THAT(after.new_state().config_json(), testing::StartsWith(R"({"sha256":"digest:)"));
  EXPECT_THAT(after.old_state().config_json(), testing::StartsWith(R"({"sha256":"digest:)"));
  EXPECT_NE(after.old_state().config_json(), after.new_state().config_json());
}

/// A notification says what changed from what to what.
TEST(DigestsOnly, ANotificationSaysWhereAndNotWhat) {
  core::AgentEvent about;
  about.what = "notification";
  about.message = "Field topic/t:motto changed from canary to canary2";
  about.details = {{"title", "Backend drift detected: orders"},
                   {"count", "2"},
                   {"remark", "Nobody has decided."},
                   {"drifts", R"([{"id":"d-1","ref":"d-1@ab","backend":"orders","resource":"topic/t","class":"config",)"
                              R"("message":"Field topic/t:motto changed from canary to canary2"}])"}};
  for (const char* what : {"notification", "escalation"}) {
    about.what = what;
    const std::string json = shown(to_stored_event(about, {"e1", 1, 1, 1}));
    EXPECT_THAT(json, Not(HasSubstr("canary"))) << what;
    for (const char* kept : {"Backend drift detected: orders", "d-1@ab", "topic/t", "Nobody has decided."})
      EXPECT_THAT(json, HasSubstr(kept)) << what;
  }
  about.details["drifts"] = "[";
  EXPECT_THAT(shown(to_stored_event(about, {"e1", 1, 1, 1})), Not(HasSubstr("canary")));
}

TEST(DigestsOnly, AnEventAboutTheAgentStays) {
  core::AgentEvent about;
  about.message = "parked";
  const auto stored = to_stored_event(about, {"e1", 1, 1, 1});
  EXPECT_EQ(digests_only(stored, {7})->payload, stored.payload);
}

}  // namespace
}  // namespace driftd::proto
