// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "grpc/filter.hpp"
#include "support/sink_events.hpp"

namespace driftd::rpc {
namespace {

using core::ChangeType;
using testing::HasSubstr;

core::StoredEvent event(ChangeType type = ChangeType::config_drift_detected, core::ChangeClass cls = {}) {
  core::BackendEvent out = test::sample_event(1, "config.updated", type);
  if (cls != core::ChangeClass{}) out.changes = {core::Change{}};
  if (!out.changes.empty()) out.changes[0].cls = cls;
  return proto::to_stored_event(out, {"id", 1, 1, 1, 1});
}

bool matches(const FilterSpec& spec, const core::StoredEvent& one) {
  const auto filter = Filter::make(spec);
  EXPECT_TRUE(filter) << (filter ? "" : filter.error().message);
  return filter && filter->matches(one);
}

TEST(FilterTest, EmptyListsSelectEveryEventAboutABackend) {
  EXPECT_TRUE(matches({}, event()));
  EXPECT_TRUE(matches({}, event(ChangeType::unspecified)));
}

TEST(FilterTest, NamesMayBeGlobs) {
  EXPECT_TRUE(matches({{"other", "orders-*"}}, event()));
  EXPECT_TRUE(matches({{"orders-kafka"}}, event()));
  EXPECT_FALSE(matches({{"orders"}}, event()));
  EXPECT_FALSE(matches({{"nats-*"}}, event()));
}

TEST(FilterTest, BackendTypesAndEventTypesMustBothMatch) {
  EXPECT_TRUE(matches({{}, {"kafka"}, {7}}, event()));
  EXPECT_FALSE(matches({{}, {"redis"}, {7}}, event()));
  EXPECT_FALSE(matches({{}, {"kafka"}, {4, 6}}, event()));
  EXPECT_FALSE(matches({{}, {}, {2}}, event(ChangeType::unspecified)));
}

TEST(FilterTest, ClassesAreThoseOfTheChangesOrOfTheType) {
  FilterSpec credentials;
  credentials.change_classes = {"credential"};
  EXPECT_TRUE(matches(credentials, event(ChangeType::config_drift_detected, core::ChangeClass::credential)));
  EXPECT_FALSE(matches(credentials, event(ChangeType::config_drift_detected, core::ChangeClass::endpoint)));
  EXPECT_TRUE(matches(credentials, event(ChangeType::credential_rotated)));
  EXPECT_FALSE(matches(credentials, event(ChangeType::health_changed)));
}

TEST(FilterTest, AgentEventsAreSentOnlyToThoseWhoAsk) {
  core::AgentEvent about;
  about.agent = "edge-1";
  about.what = "dead_letter";
  const auto one = proto::to_stored_event(about, {"id", 1, 1, 1, 1});
  EXPECT_FALSE(matches({}, one));
  FilterSpec asked;
  asked.agent_events = true;
  asked.backend_names = {"orders-kafka"};
  EXPECT_TRUE(matches(asked, one));
}

TEST(FilterTest, ABadEntryIsNamedWithWhatIsExpected) {
  const auto error = [](const FilterSpec& spec) { return Filter::make(spec).error().message; };
  EXPECT_THAT(error({{"a b"}}), HasSubstr("backend_names has 'a b'"));
  EXPECT_THAT(error({{""}}), HasSubstr("empty entry"));
  EXPECT_THAT(error({std::vector<std::string>(257, "a")}), HasSubstr("257 entries; the maximum is 256"));
  EXPECT_THAT(error({{}, {}, {0}}), HasSubstr("event_types has 0"));
  EXPECT_THAT(error({{}, {}, {8}}), HasSubstr("event_types has 8"));
  EXPECT_THAT(error({{}, {}, {}, {"secrets"}}), HasSubstr("config, credential, endpoint or health"));
}

}  // namespace
}  // namespace driftd::rpc
