// SPDX-License-Identifier: Apache-2.0
// Passwords of real servers are changed while an application works with them.
#include "postgres_slot.hpp"
#include "redis_slot.hpp"
#include "support/postgres.hpp"
#include "support/redis.hpp"
#include "world.hpp"

namespace driftd::test {
namespace {

using std::chrono::milliseconds;

/// 8 threads with an operation every 40 ms each: 200 a second.
constexpr int kThreads = 8;
constexpr milliseconds kEach{40};
constexpr const char* kRotated = "Successfully rotated credentials for slot state_store";

std::string backends(const std::string& address, const TempDir& dir) {
  nlohmann::json entry = {
      {"type", "redis"},
      {"endpoint", address},
      {"credentials", {{"username", "file:" + dir.file("username")}, {"password", "file:" + dir.file("password")}}}};
  return dir.write("backends.json", nlohmann::json{{"state_store", entry}}.dump());
}

/// Changes a file the way that a volume of Kubernetes changes: at once, by a rename.
void replace(const TempDir& dir, const std::string& name, const std::string& text) {
  dir.write(name + ".new", text);
  std::filesystem::rename(dir.file(name + ".new"), dir.file(name));
}

TEST(ConsumerRotation, OfARedisPasswordUnderLoadFailsNoOperation) {
  RedisServer redis;
  redis.command({"ACL", "SETUSER", "app", "on", ">first", "~*", "+@all"});
  NatsServer server;
  RelayRunner agent(nats_sink(at(server)));
  TempDir dir;
  dir.write("username", "app");
  dir.write("password", "first");
  Lines lines;
  auto settings = runner_settings(server, {{"state_store", "cache", "primary", {}}}, lines);
  auto runner = dc::PatternRunner::create(settings, dc::file_source(backends(redis.address(), dir)),
                                          std::make_shared<example::RedisFactory>());
  ASSERT_TRUE(runner) << runner.error().message;
  const auto started = (*runner)->start();
  ASSERT_TRUE(started) << started.error().message;
  Load load(kThreads, kEach, [&] {
    const auto slot = std::dynamic_pointer_cast<example::RedisSlot>((*runner)->slot("state_store"));
    return slot && slot->command({"INCR", "orders"}).has_value();
  });
  ASSERT_TRUE(load.goes_on());
  const std::string passwords[] = {"first", "second", "third", "fourth"};
  for (std::int64_t n = 1; n <= 3; ++n) {
    redis.command({"ACL", "SETUSER", "app", ">" + passwords[n]});  // both are valid
    replace(dir, "password", passwords[n]);
    agent.add(rotated("cache", n));
    ASSERT_TRUE(eventually([&] { return lines.count(kRotated) == n; })) << lines.text();
    redis.command({"ACL", "SETUSER", "app", "<" + passwords[n - 1]});
    ASSERT_TRUE(load.goes_on(200)) << lines.text();
  }
  load.end();
  EXPECT_EQ(load.failed(), 0) << lines.text();
  EXPECT_EQ(redis.command({"GET", "orders"}), std::to_string(load.good())) << "each operation was done once";
  const std::string metrics = (*runner)->metrics();
  EXPECT_EQ(metric(metrics, R"(prism_pattern_backend_event_received_total{pattern="order-consumer",backend="cache"})"),
            "3");
  EXPECT_EQ(metric(metrics, R"(prism_pattern_backend_reconnect_total{pattern="order-consumer",backend="cache"})"), "0");
  const std::string took =
      metric(metrics, R"(prism_pattern_credential_rotation_duration_seconds{pattern="order-consumer"})");
  EXPECT_GT(std::stod(took), 0);
  std::printf("rotations: 3, operations: %d, failed: %d, last rotation in use after %s s\n", load.good(), load.failed(),
              took.c_str());
  for (const auto& password : passwords) EXPECT_FALSE(lines.contain(password)) << lines.text();
}

TEST(ConsumerRotation, OfAPostgresRoleUnderLoadFailsNoOperation) {
  PostgresServer postgres;
  postgres.sql(
      "CREATE ROLE app_a LOGIN PASSWORD 'pw-a'; CREATE ROLE app_b LOGIN PASSWORD 'pw-b';"
      "CREATE TABLE orders (at timestamptz DEFAULT now()); GRANT ALL ON orders TO app_a, app_b");
  NatsServer server;
  RelayRunner agent(nats_sink(at(server)));
  TempDir dir;
  dir.write("username", "app_a");
  dir.write("password", "pw-a");
  Lines lines;
  auto settings = runner_settings(server, {{"state_store", "orders-db", "primary", {}}}, lines);
  auto runner = dc::PatternRunner::create(settings, dc::file_source(backends(postgres.endpoint(), dir)),
                                          std::make_shared<example::PostgresFactory>());
  ASSERT_TRUE(runner) << runner.error().message;
  const auto started = (*runner)->start();
  ASSERT_TRUE(started) << started.error().message;
  Load load(kThreads, kEach, [&] {
    const auto slot = std::dynamic_pointer_cast<example::PostgresSlot>((*runner)->slot("state_store"));
    return slot && slot->query("INSERT INTO orders DEFAULT VALUES RETURNING 1").has_value();
  });
  ASSERT_TRUE(load.goes_on());
  // Two roles that take turns, as two users of a Vault do: the idle one gets a password, the event, the switch, and the
  // one that was in use may no longer log in.
  for (std::int64_t n = 1; n <= 4; ++n) {
    const std::string idle = n % 2 == 1 ? "app_b" : "app_a", used = n % 2 == 1 ? "app_a" : "app_b";
    postgres.sql("ALTER ROLE " + idle + " LOGIN PASSWORD 'pw-" + std::to_string(n) + "'");
    replace(dir, "username", idle);
    replace(dir, "password", "pw-" + std::to_string(n));
    agent.add(rotated("orders-db", n));
    ASSERT_TRUE(eventually([&] { return lines.count(kRotated) == n; })) << lines.text();
    postgres.sql("ALTER ROLE " + used + " NOLOGIN");
    ASSERT_TRUE(load.goes_on(200)) << lines.text();
  }
  load.end();
  EXPECT_EQ(load.failed(), 0) << lines.text();
  EXPECT_EQ(postgres.value("SELECT count(*) FROM orders"), std::to_string(load.good()));
  std::printf("rotations: 4, operations: %d, failed: %d\n", load.good(), load.failed());
}

TEST(ConsumerRotation, AMountedSecretThatFollowsLaterThanItsEventIsWaitedFor) {
  RedisServer redis;
  redis.command({"ACL", "SETUSER", "app", "on", ">first", ">second", "~*", "+@all"});
  NatsServer server;
  RelayRunner agent(nats_sink(at(server)));
  TempDir dir;
  dir.write("username", "app");
  dir.write("password", "first");
  Lines lines;
  auto settings = runner_settings(server, {{"state_store", "cache", "", {}}}, lines);
  auto runner = dc::PatternRunner::create(settings, dc::file_source(backends(redis.address(), dir)),
                                          std::make_shared<example::RedisFactory>());
  ASSERT_TRUE(runner) << runner.error().message;
  ASSERT_TRUE((*runner)->start());
  agent.add(rotated("cache", 1));
  ASSERT_TRUE(eventually([&] { return lines.contain("CREDENTIAL_ROTATED for backend cache"); })) << lines.text();
  EXPECT_FALSE(lines.contain("Successfully rotated"));
  replace(dir, "password", "second");
  EXPECT_TRUE(eventually([&] { return lines.contain("Successfully rotated"); })) << lines.text();
}

TEST(ConsumerRotation, ACredentialThatTheServerRefusesMakesAllSlotsOfTheBackendReconnectUntilItIsGood) {
  RedisServer redis;
  redis.command({"ACL", "SETUSER", "app", "on", ">first", "~*", "+@all"});
  NatsServer server;
  RelayRunner agent(nats_sink(at(server)));
  TempDir dir;
  dir.write("username", "app");
  dir.write("password", "first");
  Lines lines;
  nlohmann::json entry = nlohmann::json::parse(read_file(backends(redis.address(), dir)))["state_store"];
  const std::string file = dir.write("backends.json", nlohmann::json{{"cache", entry}}.dump());
  auto settings = runner_settings(server, {{"one", "cache", "", {}}, {"two", "cache", "", {}}}, lines);
  auto runner = dc::PatternRunner::create(settings, dc::file_source(file), std::make_shared<example::RedisFactory>());
  ASSERT_TRUE(runner) << runner.error().message;
  ASSERT_TRUE((*runner)->start());
  const auto before = (*runner)->slot("two");
  replace(dir, "password", "wrong");
  agent.add(rotated("cache", 1));
  ASSERT_TRUE(eventually([&] { return lines.contain("Hot credential reload failed, reconnecting slot"); }))
      << lines.text();
  ASSERT_TRUE(eventually([&] { return lines.contain("failed to bind slot two"); })) << lines.text();
  EXPECT_EQ((*runner)->slot("two"), before) << "what still works is kept until there is something better";
  replace(dir, "password", "first");
  EXPECT_TRUE(eventually([&] {
    return lines.contain("Successfully reconnected slot one") && lines.contain("Successfully reconnected slot two");
  })) << lines.text();
  EXPECT_NE((*runner)->slot("two"), before);
}

}  // namespace
}  // namespace driftd::test
