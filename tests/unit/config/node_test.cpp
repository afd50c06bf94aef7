// SPDX-License-Identifier: Apache-2.0
// One configuration for a fleet: which backends the agent of a node runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/config.hpp"

namespace driftd::config {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kFleet = R"(agent: { name: "${env:NODE_NAME}", node: "${env:NODE_NAME}" }
backends:
  - { name: everywhere, provider: redis, node: "*" }
  - { name: here, provider: redis, node: n1 }
  - { name: there, provider: redis, node: n2, settings: { password: "${env:ONLY_ON_N2}" } }
  - { name: cluster, provider: redis }
)";

Loaded on(const std::string& node, const std::string& text = kFleet) {
  LoadOptions options;
  options.environment = [node](const std::string& name) -> std::optional<std::string> {
    if (name == "NODE_NAME" && !node.empty()) return node;
    return std::nullopt;
  };
  return parse(text, "driftd.yaml", options);
}

std::vector<std::string> names(const Loaded& loaded) {
  std::vector<std::string> out;
  if (!loaded) ADD_FAILURE() << render(loaded.error());
  if (!loaded) return out;
  for (const auto& backend : loaded->backends) out.push_back(backend.name);
  return out;
}

TEST(Node, AgentOfANodeRunsWhatIsOfItsNode) {
  const auto loaded = on("n1");
  EXPECT_THAT(names(loaded), ElementsAre("everywhere-n1", "here"));
  EXPECT_EQ(loaded->agent.name, "n1");
  EXPECT_EQ(loaded->agent.node, "n1");
}

TEST(Node, AgentWithoutANodeRunsWhatIsOfNone) {
  const std::string text = std::string(kFleet).substr(std::string(kFleet).find('\n') + 1);
  EXPECT_THAT(names(on("", text)), ElementsAre("cluster"));
}

TEST(Node, VariableThatIsNotSetIsAnErrorWithItsPlace) {
  const auto loaded = on("");
  ASSERT_FALSE(loaded);
  EXPECT_THAT(render(loaded.error()), HasSubstr("driftd.yaml:1:16: environment variable NODE_NAME is not set"));
}

TEST(Node, OnlyAVariableCanStandForAName) {
  const auto loaded = on("n1", "agent: { node: \"${file:/etc/hostname}\" }\n");
  ASSERT_FALSE(loaded);
  EXPECT_THAT(render(loaded.error()), HasSubstr("expected text, or ${env:NAME} as the whole value"));
  EXPECT_FALSE(on("n1", "agent: { node: \"a-${env:NODE_NAME}\" }\n"));
}

TEST(Node, NoneThatRunsHereIsAWarning) {
  const auto loaded = on("n9", "agent: { node: n9 }\nbackends: [ { name: a, provider: redis, node: n1 } ]\n");
  ASSERT_TRUE(loaded);
  EXPECT_THAT(loaded->backends, IsEmpty());
  EXPECT_THAT(render(loaded->warnings), HasSubstr("none of the 1 backends runs here: 'agent.node' is n9"));
}

TEST(Node, FormerNameHasTheSameEnding) {
  const auto loaded =
      on("n1", "agent: { node: n1 }\nbackends: [ { name: store, was: cache, provider: redis, node: \"*\" } ]\n");
  ASSERT_TRUE(loaded) << render(loaded.error());
  EXPECT_EQ(loaded->backends.at(0).name, "store-n1");
  EXPECT_EQ(loaded->backends.at(0).was, "cache-n1");
}

TEST(Node, NameThatOnlyTheNodesEndingMakesEqualIsFound) {
  const auto loaded = on("n1",
                         "agent: { node: n1 }\nbackends: [ { name: cache-n1, provider: redis, node: n1 }, { name: "
                         "cache, provider: redis, node: \"*\" } ]\n");
  ASSERT_FALSE(loaded);
  EXPECT_THAT(render(loaded.error()), HasSubstr("on node n1 two backends are named 'cache-n1'"));
}

TEST(Node, NamesThatCollideOnANodeAreFound) {
  const auto loaded = on("n1",
                         "agent: { node: n1 }\nbackends: [ { name: a, provider: redis, node: n1 }, { name: a, "
                         "provider: redis, node: n2 } ]\n");
  ASSERT_FALSE(loaded);
  EXPECT_THAT(render(loaded.error()), HasSubstr("two backends are named 'a'"));
}

}  // namespace
}  // namespace driftd::config
