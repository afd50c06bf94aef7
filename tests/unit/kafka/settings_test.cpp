// SPDX-License-Identifier: Apache-2.0
#include "kafka/settings.hpp"

#include <gmock/gmock.h>

#include "driftd/sdk/types.hpp"
#include "kafka/conf.hpp"

namespace driftd::kafka {
namespace {

using testing::HasSubstr;

std::string refusal(const std::string& json, driftd_status code = DRIFTD_INVALID) {
  try {
    parse_settings(json);
  } catch (const sdk::Failure& e) {
    EXPECT_EQ(e.code, code) << e.what();
    return e.what();
  }
  return "accepted";
}

TEST(KafkaSettings, BootstrapServersAreAListOrTextWithCommas) {
  const std::vector<std::string> both{"a:1", "[::1]:9092"};
  EXPECT_EQ(parse_settings(R"({"bootstrap_servers": "a:1, [::1]"})").bootstrap, both);
  EXPECT_EQ(parse_settings(R"({"bootstrap_servers": ["a:1", "[::1]:9092"]})").bootstrap, both);
}

TEST(KafkaSettings, EndpointThatIsNoneIsRefusedWithItsText) {
  for (const char* text : {"", "a:", "a:0", "a:65536", ":9092", "kafka://a:1", "a b:1", "a:1,"}) {
    EXPECT_THAT(refusal(R"({"bootstrap_servers": ")" + std::string(text) + "\"}"),
                HasSubstr("settings.bootstrap_servers"))
        << text;
  }
}

TEST(KafkaSettings, DefaultsAreThoseOfTheReadme) {
  const auto s = parse_settings(R"({"bootstrap_servers": "a", "tls": {}})");
  EXPECT_TRUE(s.tls.on);
  EXPECT_TRUE(s.tls.verify);
  EXPECT_EQ(s.connect.count(), 5000);
  EXPECT_EQ(s.call.count(), 20000);
  EXPECT_EQ(s.bootstrap.front(), "a:9092");
}

TEST(KafkaSettings, WhatIsMissingIsNamed) {
  const auto with = [](const std::string& more) { return refusal(R"({"bootstrap_servers": "a", )" + more + "}"); };
  EXPECT_THAT(with(R"("sasl": {"mechanism": "PLAIN", "password": "t"})"), HasSubstr("settings.sasl.username"));
  EXPECT_THAT(with(R"("sasl": {"mechanism": "SCRAM-SHA-256", "username": "u"})"), HasSubstr("settings.sasl.password"));
  EXPECT_THAT(with(R"("sasl": {"mechanism": "OAUTHBEARER"})"), HasSubstr("settings.sasl.token"));
  EXPECT_THAT(with(R"("sasl": {"mechanism": "MD5", "username": "u", "password": "t"})"), HasSubstr("found 'MD5'"));
  EXPECT_THAT(with(R"("tls": {"certificate": "/c"})"), HasSubstr("settings.tls.certificate"));
  EXPECT_THAT(with(R"("tls": {"verify": false, "server_name": "x"})"), HasSubstr("settings.tls.server_name"));
  EXPECT_THAT(with(R"("call_timeout_ms": 0)"), HasSubstr("settings.call_timeout_ms"));
}

TEST(KafkaSettings, ScramHelloIsOffUntilItNamesCredentials) {
  EXPECT_TRUE(parse_settings(R"({"bootstrap_servers": "a"})").hello.names.empty());
  const auto s = parse_settings(R"({"bootstrap_servers": "a", "scram_hello": {"users": [
      {"name": "app", "mechanism": "SCRAM-SHA-512"}, {"name": "app", "mechanism": "SCRAM-SHA-512"}]}})");
  EXPECT_EQ(s.hello.names, (std::vector<ScramName>{{"app", "SCRAM-SHA-512"}}));
  EXPECT_EQ(s.hello.interval.count(), 600);
  EXPECT_TRUE(s.hello.servers.empty()) << "the brokers of the cluster";
  const auto with = [](const std::string& hello) {
    return refusal(R"({"bootstrap_servers": "a", "scram_hello": )" + hello + "}");
  };
  const std::string user = R"({"name": "u", "mechanism": "SCRAM-SHA-256"})";
  EXPECT_THAT(with("{}"), HasSubstr("settings.scram_hello.users"));
  EXPECT_THAT(with(R"({"users": []})"), HasSubstr("settings.scram_hello.users"));
  EXPECT_THAT(with(R"({"users": [{"name": "", "mechanism": "SCRAM-SHA-256"}]})"),
              HasSubstr("scram_hello.users[0].name"));
  EXPECT_THAT(with(R"({"users": [{"name": "a\nb", "mechanism": "SCRAM-SHA-256"}]})"),
              HasSubstr("scram_hello.users[0].name"));
  EXPECT_THAT(with(R"({"users": [{"name": "u", "mechanism": "PLAIN"}]})"), HasSubstr("found 'PLAIN'"));
  EXPECT_THAT(with("{\"users\": [" + user + "], \"interval_s\": 0}"), HasSubstr("scram_hello.interval_s"));
  EXPECT_THAT(with("{\"users\": [" + user + "], \"servers\": \"a:0\"}"), HasSubstr("scram_hello.servers"));
}

TEST(KafkaSettings, GssapiSaysThatItIsNotBuilt) {
  EXPECT_THAT(refusal(R"({"bootstrap_servers": "a", "sasl": {"mechanism": "GSSAPI"}})", DRIFTD_UNSUPPORTED),
              HasSubstr("GSSAPI is not built"));
}

TEST(KafkaSettings, PrincipalIsKnownUnlessTheBrokerDecides) {
  EXPECT_EQ(parse_settings(R"({"bootstrap_servers": "a"})").principal(), "User:ANONYMOUS");
  EXPECT_EQ(
      parse_settings(R"({"bootstrap_servers": "a", "sasl": {"mechanism": "PLAIN", "username": "u", "password": "t"}})")
          .principal(),
      "User:u");
  EXPECT_EQ(parse_settings(R"({"bootstrap_servers": "a", "tls": {"certificate": "/c", "key": "/k"}})").principal(), "");
}

TEST(KafkaBearerToken, ClaimsTellItsEndAndItsOwner) {
  // {"alg":"none"}.{"sub":"driftd","exp":1700000000.5}.
  const std::string token = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJkcmlmdGQiLCJleHAiOjE3MDAwMDAwMDAuNX0.";
  EXPECT_EQ(claims_of(token, 5).until_ms, 1700000000500);
  EXPECT_EQ(claims_of(token, 5).subject, "driftd");
  EXPECT_EQ(claims_of("e30.e30.", 5).until_ms, 3600005);
  EXPECT_GT(claims_of("e30.eyJleHAiOjFlMzAwfQ.", 5).until_ms, 3600005) << "an end that no clock reaches";
  EXPECT_THROW(claims_of("secret-that-is-no-jwt", 5), sdk::Failure);
}

}  // namespace
}  // namespace driftd::kafka
