// SPDX-License-Identifier: Apache-2.0
// A provider warns once, when a backend is opened, if a login would be sent without TLS. Without a login there is no
// warning.
#include <gmock/gmock.h>

#include "support/provider_log.hpp"
#include "support/provider_probe.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

/// Returns what `provider` logs when it is opened with these settings; no server is contacted.
std::vector<std::string> logged(const std::string& provider, const json& settings) {
  (void)take_provider_log();
  const ProviderProbe opened("providers/" + provider + ".so", settings, {{"token-1", "canary-of-the-login"}});
  return take_provider_log();
}

/// Matches one warning that names `where` and `remedy` and contains no secret.
auto warns_of(const std::string& where, const std::string& remedy) {
  return ElementsAre(AllOf(StartsWith(std::to_string(DRIFTD_LOG_WARN)), HasSubstr("without TLS"), HasSubstr(where),
                           HasSubstr(remedy), Not(HasSubstr("canary"))));
}

TEST(PlainTransportOfProviders, RedisWarnsOfAPasswordWithoutTls) {
  json settings{{"address", "redis.example:6379"}, {"username", "driftd"}, {"password", "token-1"}};
  EXPECT_THAT(logged("redis", settings), warns_of("redis.example:6379", "settings.tls"));
  settings["address"] = "127.0.0.1:6379";
  EXPECT_THAT(logged("redis", settings), IsEmpty());
  settings["address"] = "redis.example:6379";
  settings.erase("password");
  settings.erase("username");
  EXPECT_THAT(logged("redis", settings), IsEmpty());
}

TEST(PlainTransportOfProviders, KafkaWarnsOfALoginWithoutTls) {
  json settings{{"bootstrap_servers", "localhost:9092,kafka.example:9092"},
                {"sasl", {{"mechanism", "PLAIN"}, {"username", "driftd"}, {"password", "token-1"}}}};
  EXPECT_THAT(logged("kafka", settings), warns_of("kafka.example:9092", "settings.tls"));
  settings["bootstrap_servers"] = "localhost:9092";
  EXPECT_THAT(logged("kafka", settings), IsEmpty());
}

TEST(PlainTransportOfProviders, PostgresWarnsOfASslmodeThatMayBePlain) {
  json settings{{"endpoints", {"db1.example:5432", "db2.example:5432"}}, {"user", "driftd"}, {"password", "token-1"}};
  for (const char* mode : {"disable", "allow", "prefer"}) {
    settings["sslmode"] = mode;
    EXPECT_THAT(logged("postgres", settings), warns_of("db1.example:5432", "verify-full")) << mode;
  }
  settings["sslmode"] = "require";
  EXPECT_THAT(logged("postgres", settings), IsEmpty());
  settings["sslmode"] = "prefer";
  settings["endpoints"] = "unix:/run/postgresql";
  EXPECT_THAT(logged("postgres", settings), IsEmpty());
}

TEST(PlainTransportOfProviders, TerraformWarnsOfAStateOverPlainHttp) {
  const auto logged_of = [](const std::string& address) {
    return logged("terraform", {{"backend", {{"type", "http"}, {"address", address}}}});
  };
  EXPECT_THAT(logged_of("http://user:canary@state.example/prod?token=canary"), warns_of("state.example", "https"));
  EXPECT_THAT(logged_of("https://state.example/prod"), IsEmpty());
  EXPECT_THAT(logged_of("http://localhost:8080/prod"), IsEmpty());
}

}  // namespace
}  // namespace driftd::test
