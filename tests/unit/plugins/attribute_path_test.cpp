// SPDX-License-Identifier: Apache-2.0
// Paths as the host writes them, read by a provider that puts values back.
#include "common/attribute_path.hpp"

#include <gmock/gmock.h>

#include "driftd/sdk/types.hpp"

namespace driftd::common {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::Pair;

const json kBody = json::parse(R"({"a": {"b.c": [1, {"d": null}], "q\"x": 5},
  "ports": [{"name": "http", "port": 80}, {"name": "a,b]", "port": 81}],
  "claims": [{"metadata": {"name": "data"}, "size": 1}, {"size": 2}]})");

json at(const std::string& path) {
  const json* found = find_at(kBody, parse_attribute_path(path));
  return found == nullptr ? json("nothing") : *found;
}

TEST(AttributePath, FindsMembersIndexesAndElementsByKey) {
  EXPECT_EQ(at("a[\"b.c\"][0]"), 1);
  EXPECT_EQ(at("a[\"b.c\"][1].d"), nullptr);
  EXPECT_EQ(at("a[\"q\\\"x\"]"), 5);
  EXPECT_EQ(at("ports[name=http].port"), 80);
  EXPECT_EQ(at("ports[name=\"a,b]\"].port"), 81);
  EXPECT_EQ(at("ports[name=http,port=80].port"), 80);
  EXPECT_EQ(at("ports[name=http,port=81]"), "nothing");
  EXPECT_EQ(at("claims[metadata.name=data].size"), 1);
  EXPECT_EQ(at("claims[metadata.name=null].size"), 2);
  for (const char* absent : {"b", "a.b", "a[0]", "a[\"b.c\"][2]", "ports.http", "a[\"b.c\"][0].x"})
    EXPECT_EQ(at(absent), "nothing") << absent;
}

TEST(AttributePath, StepsOfASelectorKeepWhatIsQuoted) {
  const auto path = parse_attribute_path("l[a=\"x=1,y\",b=2]");
  ASSERT_EQ(path.size(), 2u);
  EXPECT_EQ(path[1].kind, PathStep::Kind::selector);
  EXPECT_THAT(path[1].keys, ElementsAre(Pair("a", "x=1,y"), Pair("b", "2")));
}

TEST(AttributePath, WhatIsNoPathIsRefused) {
  for (const char* text :
       {"", ".", "a.", "a..b", "a[", "a[\"b", "a[\"b\"", "a[]", "a[=x]", "a b", "a[x]", "a[\"\\q\"]"}) {
    try {
      parse_attribute_path(text);
      ADD_FAILURE() << text;
    } catch (const sdk::Failure& failure) {
      EXPECT_EQ(failure.code, DRIFTD_INVALID) << text;
    }
  }
}

TEST(AttributePath, AbsentAndNullAreOne) {
  EXPECT_TRUE(holds_at(kBody, parse_attribute_path("nowhere"), parse_change_value("")));
  EXPECT_TRUE(holds_at(kBody, parse_attribute_path("a[\"b.c\"][1].d"), nullptr));
  EXPECT_FALSE(holds_at(kBody, parse_attribute_path("ports[name=http].port"), nullptr));
  EXPECT_THROW(parse_change_value("{"), sdk::Failure);
}

}  // namespace
}  // namespace driftd::common
