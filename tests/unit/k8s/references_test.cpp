// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "k8s/references.hpp"
#include "k8s/selector.hpp"

namespace driftd::k8s {
namespace {

using nlohmann::json;

TEST(K8sReferences, OnlyANameOfAnObjectIsAskedFor) {
  for (const std::string name : {"a", "a-b.c", "0"}) EXPECT_TRUE(is_object_name(name)) << name;
  for (const std::string& name :
       {std::string(), std::string("."), std::string(".."), std::string("a..b"), std::string("a%b"), std::string("A"),
        std::string("a/b"), std::string("-a"), std::string("a-"), std::string("a?b"), std::string(254, 'a'),
        std::string("a\0b", 3), std::string("\xc3\xa9")}) {
    EXPECT_FALSE(is_object_name(name)) << name.substr(0, 20);
  }
  References references;
  const auto fault = references.known({"Secret", "n", std::string(1u << 20, 'x')}, "n");
  ASSERT_TRUE(fault);
  EXPECT_LT(fault->text.size(), 300u);
}

TEST(K8sReferences, OneNamespaceAsksForItselfAndNotForAll) {
  References references;
  references.age();
  const auto asks = [&](const std::string& space, int i) {
    return !references.known({"Secret", "v", "s" + std::to_string(i)}, space);
  };
  int asked = 0;
  for (int i = 0; i < 1000; ++i) asked += asks("tenant", i) ? 1 : 0;
  EXPECT_EQ(asked, 64);
  EXPECT_TRUE(asks("prod", 0)) << "another's is asked for still";
  EXPECT_EQ(references.known({"Secret", "v", "s999"}, "tenant")->code, DRIFTD_BUDGET);
  for (int space = 0; space < 100; ++space) {
    for (int i = 0; i < 64; ++i) asked += asks("s" + std::to_string(space), i) ? 1 : 0;
  }
  EXPECT_EQ(asked + 1, 512);
}

TEST(K8sReferences, WhatWasAnsweredIsNotAskedAgainForAMinute) {
  References references;
  const auto now = References::Clock::now();
  references.age(now);
  const Ref ref{"Secret", "n", "s"};
  ASSERT_FALSE(references.known(ref, "n"));
  references.note(ref, {});
  ASSERT_TRUE(references.known(ref, "other"));
  EXPECT_TRUE(references.known(ref, "n")->text.empty());
  references.age(now + std::chrono::seconds(59));
  EXPECT_TRUE(references.known(ref, "n"));
  references.age(now + std::chrono::seconds(60));
  EXPECT_FALSE(references.known(ref, "n"));
}

TEST(K8sSelector, IsReadAsTheApiServerReadsIt) {
  const json labels{{"a", "b"}, {"e", "g"}};
  for (const char* selector : {"", "a", "a=b", "a==b", "a = b", "a=b,e=g", "a!=c", "h!=c", "!h", "e in (f,g)",
                               "e in (f, g),a", "e notin (f)", "h notin (f)"}) {
    EXPECT_TRUE(selects(selector, labels)) << selector;
  }
  for (const char* selector :
       {"h", "a=c", "a==c", "a=b,e=h", "a!=b", "!a", "e in (f)", "h in (f)", "e notin (f,g)", "a=true"}) {
    EXPECT_FALSE(selects(selector, labels)) << selector;
  }
  EXPECT_FALSE(selects("a=b", nullptr));
  EXPECT_FALSE(selects("a", {{"a", 1}}));
}

}  // namespace
}  // namespace driftd::k8s
