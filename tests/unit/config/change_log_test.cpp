// SPDX-License-Identifier: Apache-2.0
#include "config/change_log.hpp"

#include <gmock/gmock.h>

#include "config/config.hpp"

namespace driftd::test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

config::Loaded loaded_with(const std::string& section, std::vector<std::string> flag = {}) {
  config::LoadOptions options;
  options.change_logs = std::move(flag);
  return config::parse("backends: []\n" + section, "/etc/driftd/driftd.yaml", options);
}

config::ChangeLog change_log(const std::string& section, std::vector<std::string> flag = {}) {
  const auto loaded = loaded_with(section, std::move(flag));
  EXPECT_TRUE(loaded) << config::render(loaded.error());
  return loaded ? loaded->change_log : config::ChangeLog{};
}

std::string fault(const std::string& section) {
  const auto loaded = loaded_with(section);
  return loaded ? "" : config::render(loaded.error());
}

TEST(ChangeLogConfig, IsOffUnlessTheFileOrTheFlagOptsIn) {
  EXPECT_FALSE(change_log("").on());
  EXPECT_FALSE(change_log("change_log: { providers: [] }\n").on());
  EXPECT_TRUE(change_log("change_log: {}\n").on());
  EXPECT_TRUE(change_log("change_log: {}\n").logs("redis"));
  EXPECT_TRUE(change_log("", {"*"}).logs("redis"));
}

TEST(ChangeLogConfig, ProvidersAreOptedInOneByOneAndTheFlagAdds) {
  const auto some = change_log("change_log: { providers: [redis, \"k8s*\"] }\n", {"kafka"});
  EXPECT_THAT(some.providers, ElementsAre("redis", "k8s*", "kafka"));
  for (const char* provider : {"redis", "k8s", "k8s-edge", "kafka"}) EXPECT_TRUE(some.logs(provider)) << provider;
  for (const char* provider : {"postgres", "redis2", ""}) EXPECT_FALSE(some.logs(provider)) << provider;
}

TEST(ChangeLogConfig, SendsToTheSocketOfTheOnePagerUnlessItNamesAnother) {
  EXPECT_EQ(change_log("", {"*"}).target.socket, "/var/run/change-logs/change-logs.sock");
  EXPECT_EQ(change_log("change_log: { socket: logs.sock }\n").target.socket, "/etc/driftd/logs.sock");
  const auto far = change_log("change_log: { address: \"h:1\", tls: { cert: a.pem, key: a.key, ca: /ca.pem } }\n");
  EXPECT_EQ(far.target.socket, "");
  EXPECT_EQ(far.target.address, "h:1");
  EXPECT_EQ(far.target.cert, "/etc/driftd/a.pem");
  EXPECT_EQ(far.target.ca, "/ca.pem");
}

TEST(ChangeLogConfig, NothingCrossesANetworkInTheClear) {
  EXPECT_THAT(fault("change_log: { address: \"h:1\" }\n"),
              AllOf(HasSubstr("driftd.yaml:2:"), HasSubstr("needs mutual TLS"), HasSubstr("tls: { cert, key, ca }")));
  EXPECT_THAT(fault("change_log: { address: \"h:1\", tls: { cert: a.pem } }\n"), HasSubstr("needs mutual TLS"));
  EXPECT_THAT(fault("change_log: { tls: { cert: a, key: b } }\n"), HasSubstr("and there is none"));
  EXPECT_THAT(fault("change_log: { socket: /s, address: \"h:1\", tls: { cert: a, key: b } }\n"),
              HasSubstr("has 'socket' and 'address'"));
}

TEST(ChangeLogConfig, TheFlagIsNoEditOfTheFile) {
  const auto running = loaded_with("", {"redis"}), next = loaded_with("", {"redis"});
  EXPECT_TRUE(config::compare(*running, *next).restart.empty());
  const auto edited = loaded_with("change_log: { max_backlog_bytes: 2MiB }\n", {"redis"});
  const auto restart = config::compare(*running, *edited).restart;
  ASSERT_EQ(restart.size(), 1u);
  EXPECT_EQ(restart.front().what, "change_log");
}

}  // namespace
}  // namespace driftd::test
