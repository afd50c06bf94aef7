// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "config/config.hpp"

namespace driftd::config {
namespace {

using Names = std::vector<std::string>;

Config config(const std::string& text) {
  auto loaded = parse(text, "driftd.yaml");
  if (!loaded) ADD_FAILURE() << render(loaded.error());
  return loaded.value_or(Config{});
}

const std::string kBase =
    "agent: { name: a }\nbackends:\n- { name: x, provider: p, settings: { k: 1 } }\nsinks: { s: { type: stdout } }\nroutes: [ { to: [s] } ]\n";

Comparison against_base(const std::string& from, const std::string& to) {
  std::string text = kBase;
  text.replace(text.find(from), from.size(), to);
  return compare(config(kBase), config(text));
}

TEST(Compare, SameFileChangesNothing) {
  const auto same = compare(config(kBase), config("# moved\n" + kBase));
  EXPECT_EQ(same.hot, Names{});
  EXPECT_EQ(same.restart, Names{});
}

TEST(Compare, RulesAndRoutesAreHot) {
  EXPECT_EQ(against_base("provider: p,", "provider: p, ignore: [\"**.t\"],").hot, Names{"rules of backend x"});
  EXPECT_EQ(against_base("{ to: [s] }", "{ match: { change: [created] }, to: [s] }").hot, Names{"routes"});
  EXPECT_EQ(against_base("provider: p,", "provider: p, policy: { config: auto },").restart, Names{});
}

TEST(Compare, TheRestNeedsARestartAndIsNamed) {
  EXPECT_EQ(against_base("k: 1", "k: 2").restart, Names{"backends.x.settings"});
  EXPECT_EQ(against_base("provider: p,", "provider: p, interval: 1m,").restart, Names{"backends.x.interval"});
  EXPECT_EQ(against_base("name: a", "name: b").restart, Names{"agent"});
  EXPECT_EQ(against_base("name: x", "name: y").restart, (Names{"backends.x (removed)", "backends.y (added)"}));
  EXPECT_EQ(against_base("type: stdout", "type: notifications").restart, Names{"sinks.s"});
}

}  // namespace
}  // namespace driftd::config
