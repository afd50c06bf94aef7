// SPDX-License-Identifier: Apache-2.0
// The shipped schema on values as Keycloak sends them: what Keycloak reorders or masks is not drift, and a different
// twin is.
#include <gtest/gtest.h>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/judge/diff.hpp"
#include "core/value/schema.hpp"

namespace driftd::keycloak {
namespace {

/// Paths that differ, or `equal`.
std::string compared(const std::string& kind, const std::string& before, const std::string& after) {
  const auto all =
      nlohmann::json::parse(std::ifstream(std::string(DRIFTD_SOURCE_DIR) + "/plugins/keycloak/schema.json"));
  const auto schema = core::KindSchema::parse(all.at("kinds").at(kind).dump());
  const auto a = core::parse(before), b = core::parse(after);
  if (!schema || !a || !b) return "unreadable";
  std::string out;
  for (const auto& change : core::diff(*a, *b, **schema, {}).changes) out += (out.empty() ? "" : " ") + change.path;
  return out.empty() ? "equal" : out;
}

TEST(KeycloakSchema, EveryKindsDocumentIsValid) {
  const auto all =
      nlohmann::json::parse(std::ifstream(std::string(DRIFTD_SOURCE_DIR) + "/plugins/keycloak/schema.json"));
  EXPECT_EQ(all.at("kinds").size(), 9u);
  for (const auto& [kind, document] : all.at("kinds").items()) {
    const auto schema = core::KindSchema::parse(document.dump());
    EXPECT_TRUE(schema) << kind << ": " << schema.error().message;
  }
}

TEST(KeycloakSchema, SetsHaveNoOrder) {
  EXPECT_EQ(compared("client", R"({"redirectUris": ["a", "b"]})", R"({"redirectUris": ["b", "a"]})"), "equal");
  EXPECT_EQ(compared("client", R"({"redirectUris": ["a", "b"]})", R"({"redirectUris": ["a"]})"), "redirectUris");
  EXPECT_EQ(compared("role", R"({"composites": ["a", "b"]})", R"({"composites": ["b", "a"]})"), "equal");
  EXPECT_EQ(compared("component", R"({"config": {"x": ["1", "2"]}})", R"({"config": {"x": ["2", "1"]}})"), "equal");
  EXPECT_EQ(compared("realm", R"({"defaultGroups": ["/a", "/b"]})", R"({"defaultGroups": ["/b", "/a"]})"), "equal");
}

TEST(KeycloakSchema, ExecutionsHaveAnOrder) {
  EXPECT_NE(compared("authentication_flow", R"({"executions": [{"providerId": "a"}, {"providerId": "b"}]})",
                     R"({"executions": [{"providerId": "b"}, {"providerId": "a"}]})"),
            "equal");
}

TEST(KeycloakSchema, MaskedSecretsAreUnknownAndShownOnesAreCompared) {
  EXPECT_EQ(compared("identity_provider", R"({"config": {"clientSecret": "**********"}})",
                     R"({"config": {"clientSecret": "**********"}})"),
            "equal");
  EXPECT_EQ(compared("client", R"({"secret": "one"})", R"({"secret": "**********"})"), "equal");
  EXPECT_EQ(compared("client", R"({"secret": "one"})", R"({"secret": "two"})"), "secret");
}

TEST(KeycloakSchema, DurationsAndFlagsAreValues) {
  EXPECT_EQ(compared("realm", R"({"accessTokenLifespan": 300})", R"({"accessTokenLifespan": "5min"})"), "equal");
  EXPECT_EQ(compared("realm", R"({"accessTokenLifespan": 300})", R"({"accessTokenLifespan": 301})"),
            "accessTokenLifespan");
  EXPECT_EQ(compared("client", R"({"attributes": {"access.token.lifespan": "60"}})",
                     R"({"attributes": {"access.token.lifespan": "060"}})"),
            "equal");
  EXPECT_EQ(compared("client_scope", R"({"attributes": {"include.in.token.scope": "true"}})",
                     R"({"attributes": {"include.in.token.scope": "TRUE"}})"),
            "equal");
}

}  // namespace
}  // namespace driftd::keycloak
