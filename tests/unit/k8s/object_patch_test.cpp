// SPDX-License-Identifier: Apache-2.0
// The patch that puts an object back says what changes and nothing that stands beside it.
#include "k8s/object_patch.hpp"

#include <gmock/gmock.h>

#include "k8s/json_access.hpp"

namespace driftd::k8s {
namespace {

using testing::HasSubstr;
using testing::Not;

Resource resource_of(const std::string& kind, const std::string& object) {
  return {kind, "/apis/apps/v1", kind + "s", object, true, {}, {}, nullptr, {}};
}

/// The patch between two values of one list of a Deployment's container, or of a custom type whose lists have no keys.
json between(const char* list, const json& now, const json& wanted, const Resource& resource) {
  const auto object = [&](const json& value) {
    json container = {{"name", "app"}};
    container[list] = value;
    return json{{"spec", {{"template", {{"spec", {{"containers", {container}}}}}}}}};
  };
  const json from = object(now), to = object(wanted);
  json patch = patch_between(from, to, ListShape::of(resource));
  EXPECT_EQ(from.patch(patch), to) << patch;
  return patch;
}

const json kBefore = json::parse(R"([{"name": "A", "value": "1"}, {"name": "EXTRA", "value": "x"},
  {"name": "DB_PASSWORD", "value": "hunter2"}, {"name": "LAST", "value": "z"}])");

struct Edit {
  const char *name, *patch;
};
void PrintTo(const Edit& edit, std::ostream* to) { *to << edit.name; }

class BesideASecret : public testing::TestWithParam<Edit> {};

/// Both ways: commands and what takes them back.
TEST_P(BesideASecret, ThePatchDoesNotSayIt) {
  const json after = kBefore.patch(json::parse(GetParam().patch));
  for (const auto& resource : {resource_of("deployment", "Deployment"), resource_of("object", "Widget")}) {
    for (const auto& [now, wanted] : {std::pair{kBefore, after}, std::pair{after, kBefore}}) {
      const json patch = between("env", now, wanted, resource);
      EXPECT_FALSE(patch.empty());
      EXPECT_THAT(patch.dump(), Not(HasSubstr("hunter2"))) << resource.kind;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    K8s, BesideASecret,
    testing::Values(Edit{"added_before_it", R"([{"op":"remove","path":"/1"}])"},
                    Edit{"added_at_the_front", R"([{"op":"remove","path":"/0"}])"},
                    Edit{"two_added", R"([{"op":"remove","path":"/1"},{"op":"remove","path":"/0"}])"},
                    Edit{"moved_behind_it", R"([{"op":"move","from":"/0","path":"/3"}])"},
                    Edit{"the_secret_moved", R"([{"op":"move","from":"/2","path":"/0"}])"},
                    Edit{"changed", R"([{"op":"replace","path":"/1/value","value":"other"}])"},
                    Edit{"another_name", R"([{"op":"replace","path":"/1/name","value":"OTHER"}])"},
                    Edit{"moved_and_changed",
                         R"([{"op":"move","from":"/3","path":"/0"},{"op":"replace","path":"/0/value","value":"y"}])"}),
    [](const auto& each) { return each.param.name; });

TEST(K8sPatch, OneElementIsRemovedByOneOperation) {
  const json after = kBefore.patch(json::parse(R"([{"op":"remove","path":"/1"}])"));
  EXPECT_EQ(between("env", kBefore, after, resource_of("deployment", "Deployment")),
            json::parse(R"([{"op":"remove","path":"/spec/template/spec/containers/0/env/1"}])"));
}

TEST(K8sPatch, ElementsWithoutANameAreKnownByTheirValue) {
  const Resource resource = resource_of("deployment", "Deployment");
  const auto path = [](const char* rest) { return std::string("/spec/template/spec/containers/0/args/") + rest; };
  EXPECT_EQ(between("args", {"-x", "--password=hunter2", "-v", "-v"}, {"--password=hunter2", "-v", "-v"}, resource),
            json::array({json{{"op", "remove"}, {"path", path("0")}}}));
  EXPECT_EQ(between("args", {"a", "a", "b"}, {"b", "a", "a"}, resource),
            json::array({json{{"op", "move"}, {"from", path("2")}, {"path", path("0")}}}));
  EXPECT_EQ(between("args", {"a", 1, nullptr}, json::array(), resource).size(), 3u);
}

TEST(K8sPatch, ElementThatChangedIsEnteredIfItCannotBeAnotherOne) {
  const json now = json::parse(R"([{"verbs": ["get"]}, {"key": "hunter2", "verbs": ["get", "delete"]}])");
  const json wanted = json::parse(R"([{"verbs": ["get"]}, {"key": "hunter2", "verbs": ["get"]}])");
  EXPECT_EQ(between("rules", now, wanted, resource_of("object", "Widget")),
            json::parse(R"([{"op":"remove","path":"/spec/template/spec/containers/0/rules/1/verbs/1"}])"));
}

TEST(K8sPatch, NamesAreEscapedAsPointersNeedIt) {
  const json now = {{"metadata", {{"labels", {{"a/b", "1"}, {"c~d", "1"}}}}}};
  const json wanted = {{"metadata", {{"labels", {{"a/b", "2"}, {"e/~f", "3"}}}}}};
  const json patch = patch_between(now, wanted, ListShape::of(resource_of("deployment", "Deployment")));
  EXPECT_EQ(now.patch(patch), wanted) << patch;
}

TEST(K8sPatch, TellsASecretWhereverItStandsInAValue) {
  const json patch = json::parse(R"([{"op": "add", "path": "/a", "value": {"b": ["url=s3cret-value", 8080, "on"]}},
                                     {"op": "remove", "path": "/removed-one"}])");
  EXPECT_TRUE(tells(patch, {"s3cret-value"}));
  EXPECT_TRUE(tells(patch, {"x", "8080"}));
  EXPECT_TRUE(tells(patch, {"on"}));
  EXPECT_FALSE(tells(patch, {"ur", "o", "removed-one", "another-value"})) << "short texts occur by chance";
  EXPECT_FALSE(tells(patch, {}));
}

}  // namespace
}  // namespace driftd::k8s
