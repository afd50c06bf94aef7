// SPDX-License-Identifier: Apache-2.0
// Both sides of the border read include and exclude alike.
#include "driftd/sdk/scope.hpp"

#include <gtest/gtest.h>
#include <set>

#include "core/scope.hpp"

namespace driftd {
namespace {

struct Case {
  const char* settings;
  sdk::Scope scope;
};
const std::vector<Case> kScopes = {
    {"{}", {}},
    {R"({"include":["role/app_*","setting"],"exclude":["setting/log_*"]})",
     {{"role/app_*", "setting"}, {"setting/log_*"}}},
    {R"({"exclude":["role/*"]})", {{}, {"role/*"}}},
    {R"({"exclude":["role"]})", {{}, {"role"}}},
    {R"({"include":["*/x"]})", {{"*/x"}, {}}},
    {R"({"include":["role/a*b*c"]})", {{"role/a*b*c"}, {}}},
    {R"({"include":["role/a-b"]})", {{"role/a-b"}, {}}},
    {R"({"include":["role/a"],"exclude":["b"]})", {{"role/a"}, {"b"}}},
    {R"({"include":["role/a+b"]})", {{"role/a+b"}, {}}},
    {R"({"include":["role/a","b"]})", {{"role/a", "b"}, {}}},
    {R"({"include":["r*x/y"]})", {{"r*x/y"}, {}}},
    {R"({"include":["ro*"]})", {{"ro*"}, {}}},
    {R"({"include":["*le*"]})", {{"*le*"}, {}}},
};

TEST(Scope, IsGlobsOverKindAndId) {
  const sdk::Scope& some = kScopes[1].scope;
  EXPECT_TRUE(some.wants("role", "app_1"));
  EXPECT_FALSE(some.wants("role", "postgres"));
  EXPECT_TRUE(some.wants("setting", "work_mem"));
  EXPECT_FALSE(some.wants("setting", "log_line_prefix"));
  EXPECT_TRUE(some.wants_kind("role"));
  EXPECT_FALSE(some.wants_kind("database"));
  EXPECT_FALSE(kScopes[2].scope.wants_kind("role"));
  EXPECT_TRUE(kScopes[2].scope.wants_kind("setting"));
}

TEST(Scope, OfAnotherTextIsAnotherScope) {
  std::set<std::string> texts;
  for (const auto& one : kScopes) texts.insert(one.scope.text());
  EXPECT_EQ(texts.size(), kScopes.size());
}

TEST(Scope, AgentAndProviderAgree) {
  for (const auto& [settings, scope] : kScopes) {
    const core::Scope mine = core::Scope::of_settings(settings);
    for (const char* kind : {"role", "setting", "database", "x"}) {
      EXPECT_EQ(mine.wants_kind(kind), scope.wants_kind(kind)) << settings << " " << kind;
      for (const char* id : {"app_1", "log_x", "x", "a1b2c", "abc", "", "app_/x", "x/y", "a-b"}) {
        EXPECT_EQ(mine.wants({kind, id}), scope.wants(kind, id)) << settings << " " << kind << "/" << id;
      }
    }
  }
}

TEST(Scope, AKindWithSomethingInScopeIsWanted) {
  for (const auto& [settings, scope] : kScopes) {
    for (const char* kind : {"role", "setting", "database", "x"}) {
      for (const char* id : {"app_1", "a-b", "x/y", "x", "le", "a1b2c", ""}) {
        EXPECT_TRUE(scope.wants_kind(kind) || !scope.wants(kind, id)) << settings << " " << kind << "/" << id;
      }
    }
  }
}

TEST(Scope, TheAgentsOwnPseudoResourcesAreAlwaysInIt) {
  const core::Scope one = core::Scope::of_settings(R"({"include":["role/*"]})");
  EXPECT_TRUE(one.wants({"scope", "setting"}));
  EXPECT_TRUE(one.wants({"backend", "db"}));
}

TEST(Scope, SettingsOfAnotherFormAreTheProvidersToRefuse) {
  for (const char* odd : {"", "[]", R"({"include":"role"})", R"({"include":[1]})", "null"}) {
    EXPECT_TRUE(core::Scope::of_settings(odd).wants({"role", "x"})) << odd;
  }
}

}  // namespace
}  // namespace driftd
