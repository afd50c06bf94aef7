// SPDX-License-Identifier: Apache-2.0
#include "core/registration_names.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace driftd::core {
namespace {

using nlohmann::json;

json shown(const std::string& type, const std::string& settings, const std::string& credentials = {}) {
  BackendSnapshot given;
  given.type = type;
  given.config_json =
      R"({"settings":)" + settings + (credentials.empty() ? "" : R"(,"credentials":)" + credentials) + "}";
  return json::parse(shown_backend(given).config_json).at(type);
}

TEST(RegistrationNames, ALoginOfApplicationsTakesThePlaceOfTheAgentsOwn) {
  const json redis = shown("redis", R"({"address":"c:6379","username":"driftd","password":"${file:own}","db":2})",
                           R"({"username":"app","password":"${file:app}"})");
  EXPECT_EQ(redis, json::parse(R"({"db":2,"host":"c","port":6379,"tls_enabled":false,"username":"app",
                                   "password":"${file:app}"})"));
  const json postgres = shown("postgres", R"({"endpoints":["p:1"],"user":"driftd","password":"[REDACTED]"})",
                              R"({"password":"${env:APP}"})");
  EXPECT_EQ(postgres, json::parse(R"({"host":"p","port":1,"password":"${env:APP}"})"));
  const json kafka = shown("kafka",
                           R"({"bootstrap_servers":"k:9092","sasl":{"mechanism":"PLAIN","username":"driftd",
                               "password":"${file:own}"},"tls":{"key":"${file:key}","ca":"ca.pem"}})",
                           R"({"username":"app","password":"${file:app}"})");
  EXPECT_EQ(kafka["auth"]["sasl"], json::parse(R"({"mechanism":"PLAIN","username":"app","password":"${file:app}"})"));
  EXPECT_EQ(kafka["tls"], json::parse(R"({"ca":"ca.pem"})")) << "the agent's key is not the applications'";
}

TEST(RegistrationNames, WithoutOneTheReferencesOfTheSettingsStay) {
  const json redis = shown("redis", R"({"address":"c:6379","username":"driftd","password":"${file:own}"})");
  EXPECT_EQ(redis["username"], "driftd");
  EXPECT_EQ(redis["password"], "${file:own}");
}

}  // namespace
}  // namespace driftd::core
