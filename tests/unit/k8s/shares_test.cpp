// SPDX-License-Identifier: Apache-2.0
// Labels in one namespace cost no other: each has its share, and a namespace above it is skipped completely.
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "k8s/shares.hpp"

namespace driftd::k8s {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::SizeIs;

json labelled(const std::string& space, const std::string& name, const std::string& type = "redis",
              std::size_t bytes = 0) {
  json labels = {{"prism.io/backend", "true"}};
  if (!type.empty()) labels["prism.io/backend-type"] = type;
  return {{"metadata", {{"name", name}, {"namespace", space}, {"labels", labels}}},
          {"data", {{"a", std::string(bytes, 'x')}}}};
}
Ref service(const std::string& space, int number) { return {"Service", space, "s" + std::to_string(number)}; }
void fill(Shares& shares, Objects& objects, const std::string& space, int count, std::size_t bytes = 0) {
  for (int i = 0; i < count; ++i)
    shares.put(objects, service(space, i), labelled(space, service(space, i).name, "redis", bytes));
}
std::size_t of(const Objects& objects, const std::string& space) {
  return static_cast<std::size_t>(
      std::ranges::count_if(objects, [&](const auto& item) { return item.first.space == space; }));
}

TEST(K8sShares, ANamespaceWithTooManyObjectsIsPassedOverAndNoOther) {
  Shares shares;
  Objects objects;
  fill(shares, objects, "a-tenant", 1'000);
  EXPECT_EQ(of(objects, "a-tenant"), 1'000u);
  shares.put(objects, {"Secret", "a-tenant", "one-more"}, labelled("a-tenant", "one-more"));
  fill(shares, objects, "prod", 3);
  fill(shares, objects, "a-tenant", 50);
  EXPECT_EQ(of(objects, "a-tenant"), 0u) << "half of it would look like a change";
  EXPECT_EQ(of(objects, "prod"), 3u);
  std::vector<sdk::Diagnostic> told;
  shares.tell(told);
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_EQ(told[0].path, "a-tenant");
  EXPECT_EQ(told[0].kind, "registration");
  EXPECT_TRUE(told[0].id.empty()) << "all of it";
  EXPECT_THAT(told[0].text, HasSubstr("namespace a-tenant is passed over: more than 1000 of its objects"));
}

TEST(K8sShares, TheSameObjectAgainCountsOnceAndWhatIsGoneNoMore) {
  Shares shares;
  Objects objects;
  for (int i = 0; i < 3; ++i) fill(shares, objects, "prod", 900);
  for (int i = 0; i < 900; ++i) shares.remove(objects, service("prod", i));
  fill(shares, objects, "prod", 1'000);
  EXPECT_TRUE(shares.passed_over().empty());
}

TEST(K8sShares, FewObjectsOfManyBytesAreTooMuchToo) {
  Shares shares;
  Objects objects;
  fill(shares, objects, "prod", 3);
  fill(shares, objects, "tenant", 9, 1u << 20);
  EXPECT_TRUE(shares.passes_over("tenant"));
  json deep = json::array();
  for (int i = 0; i < 200'000; ++i) deep.push_back(json::array());  // 600 KB of text
  json nested = labelled("nodes", "s");
  nested["spec"] = deep;
  shares.put(objects, service("nodes", 0), nested);
  EXPECT_TRUE(shares.passes_over("nodes")) << "as they are in memory";
  EXPECT_EQ(of(objects, "prod"), 3u);
}

TEST(K8sShares, WhoOwnsWhichFieldIsNotKept) {
  Shares shares;
  Objects objects;
  json one = labelled("prod", "s");
  one["metadata"]["managedFields"] = {
      {{"manager", "kubectl"}, {"time", "2026-01-01T00:00:00Z"}, {"fieldsV1", {{"f:data", json::object()}}}}};
  shares.put(objects, service("prod", 0), one);
  const json& kept = objects.at(service("prod", 0))["metadata"]["managedFields"][0];
  EXPECT_EQ(kept, json({{"manager", "kubectl"}, {"time", "2026-01-01T00:00:00Z"}}));
}

TEST(K8sShares, WhereAllAreTooMuchTheLargestIsPassedOverWhereverItSorts) {
  for (const char* largest : {"a", "m", "z"}) {
    Shares shares({.all_objects = 50});
    Objects objects;
    for (const char* each : {"a", "b", "m", "y", "z"})
      fill(shares, objects, each, std::string(each) == largest ? 20 : 9);
    EXPECT_EQ(shares.passed_over().size(), 1u);
    EXPECT_TRUE(shares.passes_over(largest)) << largest;
    EXPECT_THAT(objects, SizeIs(36));
  }
}

TEST(K8sShares, TooManyDefinitionsArePassedOverAlsoThoseWithoutAType) {
  for (const char* type : {"redis", ""}) {
    const Settings settings;
    Shares shares;
    Objects objects;
    for (int i = 0; i < 251; ++i)
      shares.put(objects, service("tenant", i), labelled("tenant", service("tenant", i).name, type));
    fill(shares, objects, "prod", 250);
    std::vector<sdk::Diagnostic> faults;
    const auto found = definitions(objects, settings, faults);
    shares.count(objects, found, faults);
    EXPECT_EQ(of(objects, "tenant"), 0u) << type;
    EXPECT_EQ(of(objects, "prod"), 250u);
  }
}

TEST(K8sShares, WhatIsPointedToIsPaidByWhoPoints) {
  const Settings settings;
  Shares shares;
  Objects objects;
  const Ref theirs{"ConfigMap", "prod", "large"};
  for (int i = 0; i < 7; ++i) {
    EXPECT_TRUE(shares.put_for(objects, "tenant", {"ConfigMap", "prod", "large-" + std::to_string(i)},
                               labelled("prod", "large", "", 1u << 20)));
  }
  EXPECT_TRUE(shares.put_for(objects, "tenant", theirs, labelled("prod", "large", "", 1000)));
  EXPECT_FALSE(
      shares.put_for(objects, "tenant", {"ConfigMap", "prod", "more"}, labelled("prod", "more", "", 1u << 20)));
  shares.put(objects, theirs, labelled("prod", "large", "", 2u << 20));  // a watch reports that it has grown
  EXPECT_TRUE(shares.passes_over("tenant"));
  EXPECT_FALSE(shares.passes_over("prod"));
}

/// Who may write PrismBackends of the cluster may do anything there: only the limits of all count for them.
TEST(K8sShares, TwoThousandPrismBackendsOfTheClusterAreTaken) {
  const Settings settings;
  Shares shares;
  Objects objects;
  for (int i = 0; i < 2000; ++i) {
    const std::string name = "p" + std::to_string(i);
    const json discovery = {{"service", {{"name", name}, {"namespace", "prod"}}}};
    shares.put(objects, {"PrismBackend", "", name},
               {{"metadata", {{"name", name}}}, {"spec", {{"type", "redis"}, {"discovery", discovery}}}});
    EXPECT_TRUE(shares.put_for(objects, "", {"Service", "prod", name}, {{"metadata", {{"name", name}}}}));
  }
  std::vector<sdk::Diagnostic> faults;
  const auto found = definitions(objects, settings, faults);
  shares.count(objects, found, faults);
  EXPECT_EQ(found.size(), 2000u);
  EXPECT_TRUE(faults.empty());
  EXPECT_TRUE(shares.passed_over().empty()) << shares.passed_over().begin()->second;
}

TEST(K8sShares, OneLargeObjectUsedByManyDefinitionsIsCountedForEach) {
  const Settings settings;
  Shares shares;
  Objects objects;
  const Ref large{"ConfigMap", "prod", "large"};
  shares.put(objects, large, labelled("prod", "large", "redis", 1u << 20));
  for (int i = 0; i < 30; ++i) {
    const std::string name = "p" + std::to_string(i);
    shares.put(objects, {"PrismBackend", "tenant", name},
               {{"metadata", {{"name", name}, {"namespace", "tenant"}}},
                {"spec",
                 {{"type", "redis"},
                  {"discovery",
                   {{"external", {{"endpoints", {"db.example"}}}},
                    {"configMap", {{"name", "large"}, {"namespace", "prod"}, {"key", "a"}}}}}}}});
  }
  std::vector<sdk::Diagnostic> faults;
  const auto found = definitions(objects, settings, faults);
  shares.count(objects, found, faults);
  EXPECT_TRUE(shares.passes_over("tenant"));
  EXPECT_FALSE(shares.passes_over("prod"));
}

TEST(K8sShares, AnObjectOfANamespaceThatIsPassedOverDefinesNothingWhereSomebodyPointsToIt) {
  const Settings settings;
  Shares shares({.objects = 3});
  Objects objects;
  fill(shares, objects, "tenant", 4);
  ASSERT_TRUE(shares.put_for(objects, "prod", service("tenant", 0), labelled("tenant", "s0")));
  std::vector<sdk::Diagnostic> faults;
  EXPECT_TRUE(definitions(objects, settings, faults).empty());
  EXPECT_THAT(objects, SizeIs(1)) << "it is there for who points to it";
}

TEST(K8sShares, ManyFaultsOfOneNamespaceAreOne) {
  std::vector<sdk::Diagnostic> all;
  const auto fault = [](const std::string& space, int i) {
    Definition one;
    one.name = "n" + std::to_string(i);
    one.space = space;
    return fault_of(one, DRIFTD_INVALID, one.name + " has no type");
  };
  for (int i = 0; i < 200; ++i) all.push_back(fault("tenant", i));
  for (int i = 0; i < 16; ++i) all.push_back(fault("prod", i));
  const auto said = fold_by_namespace(all);
  ASSERT_THAT(said, SizeIs(17));
  EXPECT_EQ(said[0].path, "tenant");
  EXPECT_TRUE(said[0].id.empty()) << "nothing of that namespace counts as gone";
  EXPECT_THAT(said[0].text, HasSubstr("200 faults of what defines its backends, as: n0 has no type"));
  for (std::size_t i = 1; i < said.size(); ++i) EXPECT_EQ(said[i].path, "prod");
}

}  // namespace
}  // namespace driftd::k8s
