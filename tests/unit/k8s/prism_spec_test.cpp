// SPDX-License-Identifier: Apache-2.0
// What is wrong with a PrismBackend, and the endpoints that it names.
#include <gmock/gmock.h>

#include <tuple>

#include "k8s/prism.hpp"

namespace driftd::k8s {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

/// A PrismBackend with a mistake defines nothing, and labelled objects of its name do not take its place.
TEST(K8sPrismSpec, AFaultyPrismBackendIsToldAndNotDefinedByLabelsInstead) {
  const Settings settings;
  std::vector<sdk::Diagnostic> told;
  const json labels = {{"prism.io/backend", "true"}, {"prism.io/backend-name", "q"}};
  Objects objects{{{"Service", "n", "svc"},
                   {{"metadata", {{"name", "svc"}, {"namespace", "n"}, {"labels", labels}}},
                    {"spec", {{"ports", json::array({{{"port", 5432}}})}}}}}};
  objects[{"PrismBackend", "n", "q"}] = {
      {"metadata", {{"name", "q"}, {"namespace", "n"}}},
      {"spec", {{"type", "redis"}, {"discovery", {{"service", {{"name", "svc"}, {"port", "6379"}}}}}}}};
  EXPECT_TRUE(definitions(objects, settings, told).empty());
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].text,
            "backend q in namespace n: spec.discovery.service.port: expected a whole number from 1 to 65535, found the "
            "text \"6379\"");
  EXPECT_EQ(told[0].backend, "q");
}

/// Its Service must not be looked for in this cluster, where another one may have the name.
TEST(K8sPrismSpec, OneInAnotherClusterIsToldAndNotLookedForInThisOne) {
  const Settings settings;
  std::vector<sdk::Diagnostic> told;
  json spec{{"type", "redis"}, {"discovery", {{"service", {{"name", "svc"}}}}}};
  spec["discovery"]["cluster"] = {{"secretName", "emea"}, {"namespace", "n"}};
  const Objects objects{{{"PrismBackend", "n", "q"}, {{"spec", spec}}}};
  EXPECT_TRUE(definitions(objects, settings, told).empty());
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].code, DRIFTD_UNSUPPORTED);
  EXPECT_THAT(told[0].text, HasSubstr("spec.discovery.cluster"));
}

TEST(K8sPrismSpec, EndpointsOutsideOfTheClusterAreHostsWithOrWithoutAPort) {
  for (const auto& [text, host, port] : std::vector<std::tuple<std::string, std::string, std::int64_t>>{
           {"db.example.org", "db.example.org", 0},
           {"db.example.org:5432", "db.example.org", 5432},
           {"10.0.0.1:1", "10.0.0.1", 1},
           {"[2001:db8::1]", "[2001:db8::1]", 0},
           {"[2001:db8::1]:65535", "[2001:db8::1]", 65535}}) {
    const auto parsed = parse_endpoint(text);
    ASSERT_TRUE(parsed) << text;
    EXPECT_EQ(parsed->host, host);
    EXPECT_EQ(parsed->port.value_or(0), port) << text;
  }
  for (const char* bad :
       {"", ":1", "a:", "a:0", "a:65536", "a:1x", "a:-1", "a:1:2", "2001:db8::1", "[]", "[]:1", "[::1", "[::1]x:1",
        "[db.example]:1", "user@host:1", "http://host:1", "host/path", "a b:1", "h:123456"})
    EXPECT_FALSE(parse_endpoint(bad)) << bad;
  EXPECT_FALSE(parse_endpoint(std::string(254, 'a')));
}

}  // namespace
}  // namespace driftd::k8s
