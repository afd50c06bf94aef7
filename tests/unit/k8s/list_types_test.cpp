// SPDX-License-Identifier: Apache-2.0
// What lists mean (sets, maps by keys), in the provider's table and in the API server's OpenAPI documents.
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "driftd/sdk/types.hpp"
#include "k8s/list_types.hpp"
#include "k8s/openapi.hpp"

namespace driftd::k8s {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

const ListTypes& table() {
  static const ListTypes kTable(json::parse(R"({
    "kinds": {"K": "K"},
    "types": {"K": {"spec": {"of": "Spec"}},
              "Spec": {"ports": {"keys": ["port", "protocol"], "of": "Port"},
                       "names": {"set": true},
                       "zones": {"of": "Zones"}},
              "Port": {"tags": {"set": true}},
              "Zones": {"*": {"keys": ["id"]}}}})"));
  return kTable;
}

TEST(K8sListTypes, AMapIsAnObjectByItsKeysASetIsSortedAndAnyOtherListStays) {
  const json one = {{"port", 80}, {"protocol", "TCP"}, {"tags", {"b", "a"}}}, two = {{"port", 80}, {"protocol", "UDP"}};
  const json spec = {{"ports", {one, two}}, {"names", {"z", "y"}}, {"order", {2, 1}}};
  const json shaped = table().shaped({{"spec", spec}}, "K").at("spec");
  EXPECT_EQ(shaped.at("ports"),
            json({{"80/TCP", {{"port", 80}, {"protocol", "TCP"}, {"tags", {"a", "b"}}}}, {"80/UDP", two}}));
  EXPECT_EQ(shaped.at("names"), json({"y", "z"}));
  EXPECT_EQ(shaped.at("order"), json({2, 1}));
  json swapped = spec;
  swapped["ports"] = {two, one};
  EXPECT_EQ(table().shaped({{"spec", swapped}}, "K").at("spec"), shaped);
}

TEST(K8sListTypes, AMapWithARepeatedOrMissingKeyStaysAListSoThatNoElementIsHidden) {
  const json one = {{"port", 80}, {"protocol", "TCP"}, {"name", "a"}}, twin = {{"port", 80}, {"protocol", "TCP"}};
  for (const json& ports : {json{one, twin}, json{one, {{"port", 81}}}, json{one, "text"}})
    EXPECT_EQ(table().shaped({{"spec", {{"ports", ports}}}}, "K").at("spec").at("ports"), ports);
}

TEST(K8sListTypes, AStarStandsForAnyMemberAndAPathLeadsIntoLists) {
  const json object = json::parse(R"({"spec": {"zones": {"a": [{"id": "x"}]}}})");
  EXPECT_EQ(table().shaped(object, "K"), json::parse(R"({"spec": {"zones": {"a": {"x": {"id": "x"}}}}})"));
  EXPECT_EQ(table().shaped_at({"b", "a"}, "K", {"spec", "ports", "0", "tags"}), json({"a", "b"}));
  const json ports = json::parse(R"([{"port": 1, "protocol": "TCP"}])");
  EXPECT_EQ(table().shaped_at(ports, "K", {"spec", "ports"}), json({{"1/TCP", ports[0]}}));
  EXPECT_EQ(table().shaped_at({2, 1}, "K", {"spec", "none", "deeper"}), json({2, 1}));
}

/// An OpenAPI document with an inline type, a type that refers to itself, and one that leads nowhere.
json openapi() {
  return json::parse(R"({"paths": {"/x": {"description": "long"}}, "components": {"schemas": {
    "g.v1.K": {
      "x-kubernetes-group-version-kind": [{"group": "g", "version": "v1", "kind": "K"}],
      "properties": {
        "description": {"type": "array", "x-kubernetes-list-type": "set"},
        "spec": {"properties": {
          "ports": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port"],
                    "items": {"allOf": [{"$ref": "#/components/schemas/g.v1.Loop"}]}},
          "hosts": {"x-kubernetes-patch-merge-key": "ip", "items": {"type": "object"}},
          "rows": {"x-kubernetes-patch-merge-key": "ip", "x-kubernetes-list-type": "atomic", "items": {}},
          "plain": {"$ref": "#/components/schemas/g.v1.Plain"}}}}},
    "g.v1.Loop": {"properties": {
      "more": {"additionalProperties": {"$ref": "#/components/schemas/g.v1.Loop"}},
      "ids": {"x-kubernetes-list-type": "set"}}},
    "g.v1.Plain": {"properties": {"again": {"$ref": "#/components/schemas/g.v1.Plain"}}}}}})");
}

TEST(K8sOpenApi, OfADocumentOnlyWhatLeadsToListsWithAMeaningIsKept) {
  const json parsed = parse_openapi(openapi().dump());
  EXPECT_FALSE(parsed.contains("paths"));
  ASSERT_EQ(type_name(parsed, {"g", "v1", "K"}), "g.v1.K");
  EXPECT_EQ(type_name(parsed, {"g", "v2", "K"}), "");
  EXPECT_EQ(list_types_of(parsed, {"g.v1.K"}), json::parse(R"({
    "g.v1.K": {"description": {"set": true}, "spec": {"of": "g.v1.K.spec"}},
    "g.v1.K.spec": {"ports": {"keys": ["port"], "of": "g.v1.Loop"}, "hosts": {"keys": ["ip"]}},
    "g.v1.Loop": {"more": {"of": "g.v1.Loop.more"}, "ids": {"set": true}},
    "g.v1.Loop.more": {"*": {"of": "g.v1.Loop"}}})"));
}

TEST(K8sOpenApi, ADocumentThatIsTooLargeOrNoneIsRefusedWithTheReason) {
  const auto why = [](const std::string& text) -> std::string {
    try {
      return parse_openapi(text).dump();
    } catch (const sdk::Failure& failure) {
      return failure.what();
    }
  };
  EXPECT_THAT(why("{"), HasSubstr("not valid JSON"));
  EXPECT_THAT(why("{}"), HasSubstr("no components.schemas"));
  EXPECT_THAT(why(std::string(kMaxOpenApi + 1, ' ')), HasSubstr("8 MiB"));
  EXPECT_THAT(why(std::string(200, '[') + std::string(200, ']')), HasSubstr("deeper than 128"));
  std::string many = R"({"components":{"schemas":{"a":{"properties":{)";
  for (int i = 0; i < 200'001; ++i) many += "\"" + std::to_string(i) + "\":{\"a\":1},";
  EXPECT_THAT(why(many + "\"z\":{}}}}}}"), HasSubstr("more than 400000 values"));
}

}  // namespace
}  // namespace driftd::k8s
