// SPDX-License-Identifier: Apache-2.0
// What a chat message says about an event.
#include <gmock/gmock.h>

#include "sinks/common/chat/message.hpp"
#include "unit/chat/chat_fixture.hpp"

namespace driftd::test {
namespace {

using testing::HasSubstr;
using testing::Not;

core::AgentEvent event() {
  core::AgentEvent out;
  out.agent = "edge-1";
  out.what = "notification";
  out.backend = "orders";
  out.message = "all of it";
  out.details = {
      {"title", "Backend drift detected: orders"},
      {"kind", "opened"},
      {"count", "40"},
      {"actions", "APPROVE REJECT IGNORE"},
      {"remark", "Nobody has decided since then."},
      {"drifts", R"([{"id":"d-1","ref":"d-1@ab","backend":"orders","resource":"topic/t","class":"config",)"
                 R"("message":"Field topic/t:a changed from 1 to 2\nField topic/t:b changed from 3 to 4"}])"}};
  return out;
}

ChatMessage message(const core::AgentEvent& about) {
  const auto out = sinks::message_of(proto::to_stored_event(about, {"e1", 1, 1, 1'000'000'000}));
  EXPECT_TRUE(out) << (out ? "" : out.error().message);
  return out.value_or(ChatMessage{});
}

TEST(ChatMessages, ANotificationHasItsDrifts) {
  const ChatMessage found = message(event());
  EXPECT_EQ(found.what, "agent.notification");
  EXPECT_EQ(found.title, "Backend drift detected: orders");
  EXPECT_EQ(found.count, 40u);
  ASSERT_EQ(found.drifts.size(), 1u);
  EXPECT_EQ(found.drifts.front().ref, "d-1@ab");
  EXPECT_EQ(found.text, "") << "the drifts say it";
  EXPECT_EQ(found.remark, "Nobody has decided since then.");
  EXPECT_THAT(texts(rendered(builtin(ChatFormat::slack), found)),
              testing::Contains("and 39 more: driftd drifts --status pending --backend orders"));
}

TEST(ChatMessages, AnEventOfAnEarlierVersionIsShownByItsText) {
  core::AgentEvent old = event();
  old.details["drifts"] = R"([{"id":"d-1","ref":"d-1@ab"}])";
  EXPECT_EQ(message(old).text, "all of it");
  old.details["drifts"] = "[{";
  EXPECT_EQ(message(old).text, "all of it");
}

TEST(ChatMessages, AnyOtherEventOfTheAgentHasATitle) {
  core::AgentEvent gap;
  gap.what = "gap";
  gap.backend = "orders";
  gap.message = "3 events are lost";
  EXPECT_EQ(message(gap).title, "driftd: gap: orders");
  EXPECT_EQ(message(gap).text, "3 events are lost");
}

TEST(ChatMessages, AnEventOfABackendShowsItsChangesAndNoSecret) {
  core::BackendEvent about;
  about.backend_name = "orders";
  about.resource = core::ResourceId{"topic", "t"};
  about.what = "config.updated";
  about.drift_id = "d-1";
  about.changes = {{"a", core::ChangeClass::config, "1", "2", false},
                   {"p", core::ChangeClass::credential, "\"digest:canary1\"", "\"digest:canary2\"", true},
                   {"n", core::ChangeClass::config, std::nullopt, "3", false}};
  const auto found = sinks::message_of(proto::to_stored_event(about, {"e1", 1, 1, 1}));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->title, "Backend drift detected: orders");
  EXPECT_THAT(found->text, HasSubstr("Field topic/t:a changed from 1 to 2\n"));
  EXPECT_THAT(found->text, HasSubstr("Field topic/t:n changed from (absent) to 3"));
  EXPECT_THAT(found->text, HasSubstr("[REDACTED]"));
  EXPECT_THAT(found->text, Not(HasSubstr("canary")));
}

TEST(ChatMessages, WhatCannotBeSeenIsMadeVisible) {
  core::AgentEvent hostile = event();
  hostile.details["title"] = "a\x1b[31m\u202eb\nc";
  hostile.message = "one\r\ntwo\x07";
  hostile.details["drifts"] = "[]";
  const ChatMessage found = message(hostile);
  EXPECT_EQ(found.title, "a\\x1b[31m\\u202eb\nc");
  EXPECT_EQ(found.text, "one\\x0d\ntwo\\x07");
}

TEST(ChatMessages, BytesThatAreNoEventAreRefused) {
  core::StoredEvent broken;
  broken.agent_event = true;
  broken.payload = "\xff\xff";
  EXPECT_FALSE(sinks::message_of(broken));
}

}  // namespace
}  // namespace driftd::test
