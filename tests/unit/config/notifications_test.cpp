// SPDX-License-Identifier: Apache-2.0
// `notifications:` with its links, and `approvals:` of rules: what is read, and what is said of mistakes.
#include <gmock/gmock.h>

#include "config/config.hpp"

namespace driftd::config {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

Loaded read_section(const std::string& section) {
  LoadOptions options;
  options.resolve_secrets = false;
  return parse(
      "sinks:\n  desk: { type: webhook, url: \"${env:U}\", format: slack }\n  bus: { type: stdout }\n"
      "  dig: { type: webhook, url: \"${env:U}\", format: slack, events: digests_only }\n"
      "notifications: { " +
          section + " }\n",
      "driftd.yaml", options);
}

std::string refused(const std::string& section) {
  const auto loaded = read_section(section);
  return loaded ? "accepted" : render(loaded.error());
}

TEST(Notifications, AreOffWithoutTheirSectionAndHaveDefaults) {
  EXPECT_FALSE(parse("{}\n", "driftd.yaml")->notifications.on);
  const auto loaded = read_section("");
  ASSERT_TRUE(loaded) << render(loaded.error());
  EXPECT_TRUE(loaded->notifications.on);
  EXPECT_EQ(loaded->notifications.group_by, std::vector<std::string>{"backend"});
  EXPECT_EQ(loaded->notifications.max_per_hour, 20u);
  EXPECT_TRUE(loaded->notifications.links.base_url.empty()) << "no links unless somebody says where they lead";
}

TEST(Notifications, EveryKeyIsRead) {
  const auto loaded = read_section(
      "group_by: [kind, 'label:team'], group_wait: 5s, group_interval: 1m, repeat: 3h, "
      "escalate_after: 1h, listed: 7, max_per_hour: 3, links: { base_url: \"https://ops.example/d/\", "
      "listen: \"127.0.0.1:9\", sinks: [desk], actions: [claim], expire_after: 2h }");
  ASSERT_TRUE(loaded) << render(loaded.error());
  const auto& read = loaded->notifications;
  EXPECT_EQ(read.group_by, (std::vector<std::string>{"kind", "label:team"}));
  EXPECT_EQ(read.group_wait.count(), 5);
  EXPECT_EQ(read.group_interval.count(), 60);
  EXPECT_EQ(read.repeat.count(), 3 * 3'600);
  EXPECT_EQ(read.escalate_after.count(), 3'600);
  EXPECT_EQ(read.listed, 7u);
  EXPECT_EQ(read.max_per_hour, 3u);
  EXPECT_EQ(read.links.base_url, "https://ops.example/d");
  EXPECT_EQ(read.links.listen, "127.0.0.1:9");
  EXPECT_EQ(read.links.sinks, std::vector<std::string>{"desk"});
  EXPECT_EQ(read.links.actions, std::vector<std::string>{"claim"});
  EXPECT_EQ(read.links.expire_after.count(), 7'200);
  EXPECT_EQ(read_section("repeat: 0s")->notifications.repeat.count(), 0) << "never again";
}

TEST(Notifications, MistakesAreNamedWithTheirPlace) {
  const std::string url = "base_url: \"https://h\"";
  const std::pair<std::string, std::string> mistakes[] = {
      {"group_by: [colour]", "driftd.yaml:5:28: drifts cannot be grouped by 'colour'; expected backend, kind, class"},
      {"group_by: ['label:']", "drifts cannot be grouped by 'label:'"},
      {"group_wait: soon", "driftd.yaml:5:30: "},
      {"group_interval: 0s", "driftd.yaml:5:34: "},
      {"listed: 0", "driftd.yaml:5:26: "},
      {"max_per_hour: 1001", "driftd.yaml:5:32: "},
      {"repaet: 4h", "driftd.yaml:5:18: "},
      {"repaet: 4h", "did you mean 'repeat'?"},
      {"links: {}", "has no 'base_url'; expected https://HOST[/PATH]"},
      {"links: { base_url: \"http://ops.example\", sinks: [desk] }", "has a 'base_url' that cannot be used"},
      {"links: { base_url: \"https://h/?q=1\", sinks: [desk] }", "driftd.yaml:5:37: "},
      {"links: { base_url: \"https://h/<x>|y\", sinks: [desk] }", "that cannot be used"},
      {"links: { " + url + " }", "names no 'sinks'"},
      {"links: { " + url + ", sinks: [nobody] }", "driftd.yaml:5:57: there is no sink 'nobody'"},
      {"links: { " + url + ", sinks: [bus] }", "sink 'bus' sends no messages for people"},
      {"links: { " + url + ", sinks: [dig] }", "sink 'dig' gets no values, and the pages of links show them"},
      {"links: { " + url + ", sinks: [desk], actions: [enforce] }", "a link cannot 'enforce'; expected one of approve"},
      {"links: { " + url + ", sinks: [desk], expire_after: 5s }", "driftd.yaml:5:79: "},
      {"links: { " + url + ", sinks: [desk], listen: \"0.0.0.0:7481\" }", "driftd.yaml:5:73: 'listen' of "},
      {"links: { " + url + ", sinks: [desk], listen: \"127.0.0.1\" }",
       "is not a loopback address; expected 127.0.0.1:PORT"},
  };
  for (const auto& [section, expected] : mistakes) {
    EXPECT_THAT(refused(section), HasSubstr(expected)) << section;
    EXPECT_THAT(refused(section), StartsWith("driftd.yaml:5:")) << section;
  }
}

TEST(Notifications, ApprovalsOfARuleAreAFewPersons) {
  const auto rule = [](const std::string& text) {
    const auto loaded =
        parse("defaults:\n  policy:\n  - { match: { kind: topic }, action: " + text + " }\n", "driftd.yaml");
    return loaded ? "accepted" : render(loaded.error());
  };
  EXPECT_EQ(rule("manual, approvals: 2"), "accepted");
  EXPECT_EQ(rule("manual, approvals: 10"), "accepted");
  EXPECT_THAT(rule("manual, approvals: 0"), StartsWith("driftd.yaml:3:"));
  EXPECT_THAT(rule("manual, approvals: 11"), StartsWith("driftd.yaml:3:"));
  EXPECT_THAT(rule("manual, approvals: two"), StartsWith("driftd.yaml:3:"));
  EXPECT_THAT(rule("auto, approvals: 2"), StartsWith("driftd.yaml:3:")) << "nobody is asked";
}

}  // namespace
}  // namespace driftd::config
