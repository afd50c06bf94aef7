// SPDX-License-Identifier: Apache-2.0
#include "secrets/plain_references.hpp"

#include <gtest/gtest.h>

namespace driftd::secrets {
namespace {

class Endpoint : public testing::Test {
 protected:
  Endpoint() {
    auto info = std::make_shared<core::ProviderInfo>();
    info->id = "redis";
    info->settings_schema =
        R"({"type":"object","properties":{"address":{"type":"string"},"password":{"type":"string","writeOnly":true}}})";
    plugins_.push_back({"/p/redis.so", info, {}, {}, false, {}});
    spec_.provider = "redis";
  }
  std::string endpoint(const std::string& settings, const std::string& registration = "{}") {
    spec_.settings_json = settings;
    spec_.registration_json = registration;
    EXPECT_TRUE(reveal_plain_references(spec_, plugins_));
    return spec_.endpoint;
  }
  std::vector<core::SessionFactory::ScanResult> plugins_;
  core::BackendSpec spec_;
};

TEST_F(Endpoint, LosesUserInfoAndQuery) {
  EXPECT_EQ(endpoint(R"({"address":"redis://u:canary@h:6379?token=canary"})"), "redis://h:6379");
}

TEST_F(Endpoint, OfAReferenceIsAnAddressWithoutCredentials) {
  spec_.secrets["driftd-secret-1"] = "redis://u:canary@h:6379?token=canary";
  EXPECT_EQ(endpoint(R"({"address":"driftd-secret-1"})"), "redis://h:6379");
  EXPECT_EQ(spec_.settings_json, R"({"address":"redis://u:canary@h:6379?token=canary"})")
      << "the plugin gets all of it";
  EXPECT_EQ(spec_.secrets.size(), 1u) << "and the scrubber must know it";
}

TEST_F(Endpoint, OfAReferenceThatIsNoAddressIsTheReference) {
  spec_.secrets["driftd-secret-1"] = "canary";
  EXPECT_EQ(endpoint(R"({"address":"driftd-secret-1"})", R"({"settings":{"address":"${env:ADDRESS}"}})"),
            "${env:ADDRESS}");
}

TEST_F(Endpoint, WaitsForAProgramThatHasNotAnswered) { EXPECT_EQ(endpoint(R"({"address":"driftd-secret-1"})"), ""); }

}  // namespace
}  // namespace driftd::secrets
