// SPDX-License-Identifier: Apache-2.0
// The C face, used from C.
#include "c_consumer.h"
#include "support/redis.hpp"
#include "world.hpp"

namespace driftd::test {
namespace {

std::string metrics_of(driftd_consumer* consumer) {
  std::string out(driftd_consumer_metrics(consumer, nullptr, 0) + 1, '\0');
  driftd_consumer_metrics(consumer, out.data(), out.size());
  return out;
}

TEST(ConsumerInC, FollowsARotationAndReplacesABrokenConnection) {
  RedisServer redis;
  redis.command({"ACL", "SETUSER", "app", "on", ">first", "~*", "+@all"});
  NatsServer server;
  RelayRunner agent(nats_sink(at(server)));
  TempDir dir;
  ::setenv("DRIFTD_TEST_C_USER", "app", 1);
  dir.write("password", "first");
  const nlohmann::json entry = {
      {"type", "redis"},
      {"endpoint", redis.address()},
      {"credentials", {{"username", "env:DRIFTD_TEST_C_USER"}, {"password", "file:" + dir.file("password")}}}};
  const std::string file = dir.write("backends.json", nlohmann::json{{"cache", entry}}.dump());
  char error[256] = "";
  driftd_consumer* consumer = c_consumer_start(server.url().c_str(), file.c_str(), error, sizeof error);
  ASSERT_NE(consumer, nullptr) << error;
  EXPECT_EQ(c_consumer_count(consumer), 1);
  redis.command({"ACL", "SETUSER", "app", ">second"});
  dir.write("password", "second");
  agent.add(rotated("cache", 1));
  const std::string took = R"(prism_pattern_credential_rotation_duration_seconds{pattern="order-consumer"})";
  EXPECT_TRUE(eventually([&] {
    const std::string value = metric(metrics_of(consumer), took);
    return !value.empty() && std::stod(value) > 0;
  })) << metrics_of(consumer);
  redis.command({"ACL", "SETUSER", "app", "<first"});
  EXPECT_EQ(c_consumer_count(consumer), 2);
  redis.command({"CLIENT", "KILL", "USER", "app"});
  EXPECT_EQ(c_consumer_count(consumer), -1) << "the connection was cut";
  EXPECT_TRUE(eventually([&] { return c_consumer_count(consumer) == 3; }));
  driftd_consumer_destroy(consumer);
}

TEST(ConsumerInC, MistakesAreReportedInTheCallersBuffer) {
  char error[64] = "";

  driftd_consumer_settings settings{};
  EXPECT_EQ(driftd_consumer_create(&settings, nullptr, nullptr, error, sizeof error), nullptr);
  EXPECT_STREQ(error, "settings: size must be sizeof(driftd_consumer_settings)");
  settings.size = sizeof settings;
  EXPECT_EQ(driftd_consumer_create(&settings, nullptr, nullptr, error, 10), nullptr);
  EXPECT_STREQ(error, "calls: co");
}

}  // namespace
}  // namespace driftd::test
