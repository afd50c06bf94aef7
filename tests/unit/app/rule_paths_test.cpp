// SPDX-License-Identifier: Apache-2.0
// Rules whose path can belong to no attribute are warned of where that is certain, and nowhere else.
#include "app/rule_paths.hpp"

#include <gmock/gmock.h>

#include "config/load.hpp"
#include "support/process.hpp"

namespace driftd::app {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class RulePaths : public testing::Test {
 protected:
  RulePaths() {
    info_.id = "fake";
    info_.describe = R"({"complete":["server","user"]})";
    add("server", R"("version":{},"config.*":{},"config.maxmemory-policy":{},"history.id":{})");
    add("user", R"("flags":{},"keys":{"collection":"set"})");
  }
  void add(const std::string& kind, const std::string& attributes) {
    info_.kinds.push_back(kind);
    auto schema = core::KindSchema::parse(R"({"schema":"driftd-schema/1","kind":")" + kind +
                                          R"(","revision":1,"class":"config","attributes":{)" + attributes + "}}");
    ASSERT_TRUE(schema) << schema.error().message;
    info_.schemas[kind] = *schema;
  }
  /// Returns the warnings about a backend with these rules.
  std::vector<std::string> warnings(const std::string& rules, const std::string& defaults = "{}") const {
    const std::string file =
        dir_.write("driftd.yaml", "agent: { data_dir: " + dir_.path().string() + " }\ndefaults: " + defaults +
                                      "\nbackends:\n  - name: cache\n    provider: fake\n" + rules);
    const auto config = config::load(file, {});
    EXPECT_TRUE(config) << config::render(config.error());
    std::vector<std::string> out;
    for (const auto& one : unknown_rule_paths(*config, config->backends.at(0), info_))
      out.push_back(config::render(one));
    return out;
  }
  test::TempDir dir_;
  core::ProviderInfo info_;
};

TEST_F(RulePaths, EachKindOfRuleIsNamedWithItsPlaceAndTheNearestPath) {
  EXPECT_THAT(warnings("    ignore: [maxmemory-policy]\n"),
              ElementsAre(AllOf(HasSubstr("driftd.yaml:6:14: backend 'cache': this rule does nothing"),
                                HasSubstr("expected config.maxmemory-policy; found 'maxmemory-policy'"))));
  EXPECT_THAT(warnings("    policy: [{ match: { kind: user, path: flag }, action: auto }]\n"),
              ElementsAre(AllOf(HasSubstr("driftd.yaml:6:"), HasSubstr("no attribute of kind 'user' has this path"),
                                HasSubstr("expected flags; found 'flag'"))));
  EXPECT_THAT(warnings("    expect: [{ match: { kind: server }, where: { elsewhere: 1 } }]\n"),
              ElementsAre(HasSubstr("expected a path that begins with config, history, version; found 'elsewhere'")));
}

TEST_F(RulePaths, WhatMayBeAnAttributeIsNotWarnedOf) {
  EXPECT_THAT(
      warnings("    ignore: [version, config.anything, 'config[\"a.b\"]', history, 'keys[0]', '**.id', 'conf*', "
               "'[\"flags\"]', '*', gone, system_identity]\n"),
      IsEmpty());
  EXPECT_THAT(warnings("    ignore: [{ kind: elsewhere, path: unheard }, { kind: scope, path: gone }]\n"), IsEmpty());
}

TEST_F(RulePaths, OneKindThatMayHaveMoreLeavesOnlyRulesForTheOthers) {
  add("object", R"("labels":{})");  // describe does not say that it is complete
  EXPECT_THAT(warnings("    ignore: [maxmemory-policy, { kind: object, path: unheard }]\n"), IsEmpty());
  EXPECT_THAT(warnings("    ignore: [{ kind: server, path: maxmemory-policy }]\n"), testing::SizeIs(1));
  info_.describe = R"({"complete":["server","user","object"]})";
  EXPECT_THAT(warnings("    ignore: [maxmemory-policy]\n"), testing::SizeIs(1));
  add("open", R"("**":{})");
  info_.describe = R"({"complete":["server","user","object","open"]})";
  EXPECT_THAT(warnings("    ignore: [maxmemory-policy]\n"), IsEmpty()) << "its schema does not name them";
}

TEST_F(RulePaths, RulesOfDefaultsAreForOtherProvidersToo) {
  EXPECT_THAT(warnings("    ignore: [flags]\n", "{ ignore: [metadata.generation] }"), IsEmpty());
}

TEST_F(RulePaths, AProviderThatSaysNothingOfItsSchemasIsNotJudged) {
  for (const char* describe : {"{}", "", R"({"complete":true})", R"({"complete":[1]})"}) {
    info_.describe = describe;
    EXPECT_THAT(warnings("    ignore: [maxmemory-policy]\n"), IsEmpty()) << describe;
  }
}

}  // namespace
}  // namespace driftd::app
