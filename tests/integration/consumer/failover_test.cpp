// SPDX-License-Identifier: Apache-2.0
// Servers that die, move and are promoted, and what the slots of a pattern do.
#include "redis_slot.hpp"
#include "support/redis.hpp"
#include "world.hpp"

namespace driftd::test {
namespace {

using std::chrono::milliseconds;
using Steady = std::chrono::steady_clock;

std::string backends(const TempDir& dir, const std::map<std::string, std::string>& endpoints) {
  nlohmann::json out = nlohmann::json::object();
  for (const auto& [name, endpoint] : endpoints) out[name] = {{"type", "redis"}, {"endpoint", endpoint}};
  return dir.write("backends.json", out.dump());
}

std::unique_ptr<dc::PatternRunner> started(dc::RunnerSettings settings, const std::string& file) {
  auto runner =
      dc::PatternRunner::create(std::move(settings), dc::file_source(file), std::make_shared<example::RedisFactory>());
  if (!runner) throw std::runtime_error(runner.error().message);
  const auto done = (*runner)->start();
  if (!done) throw std::runtime_error(done.error().message);
  return std::move(*runner);
}

/// What an application does: one operation, and a report if its connection is broken.
std::function<bool()> increments(dc::PatternRunner& runner) {
  return [&runner] {
    const auto slot = std::dynamic_pointer_cast<example::RedisSlot>(runner.slot("state_store"));
    if (!slot) return false;
    const auto done = slot->command({"INCR", "orders"});
    if (!done && done.error().code == dc::Code::unavailable) runner.report_broken("state_store", slot);
    return done.has_value();
  };
}

/// A primary and its replica, in sync.
struct Pair {
  RedisServer primary, replica{{"--replicaof", "127.0.0.1 " + std::to_string(primary.port())}};
  Pair() {
    const auto in_sync = [this] {
      return replica.command({"INFO", "replication"}).find("master_link_status:up") != std::string::npos;
    };
    if (!eventually(in_sync)) throw std::runtime_error("the replica does not follow");
  }
  /// As a Sentinel does after the primary died.
  void fail_over() {
    primary.stop();
    replica.command({"REPLICAOF", "NO", "ONE"});
  }
};

TEST(ConsumerFailover, OperationsResumeWithinTwoSecondsOfTheEventThatNamesTheNewPrimary) {
  Pair redis;
  NatsServer server;
  RelayRunner agent(nats_sink(at(server)));
  TempDir dir;
  Lines lines;
  auto settings = runner_settings(server, {{"state_store", "cache", "primary", {}}}, lines);
  settings.checkpoint = dir.file("checkpoint.json");
  const std::string file = backends(dir, {{"cache", redis.primary.address()}});
  auto runner = started(settings, file);
  Load load(8, milliseconds(40), increments(*runner));
  ASSERT_TRUE(load.goes_on());
  redis.fail_over();
  ASSERT_TRUE(eventually([&] { return load.failed() > 0; }));
  const int good = load.good();
  const auto event_at = Steady::now();
  agent.add(moved("cache", 1, redis.replica.address()));
  ASSERT_TRUE(eventually([&] { return load.good() > good; })) << lines.text();
  const auto took = std::chrono::duration_cast<milliseconds>(Steady::now() - event_at);
  EXPECT_LT(took, milliseconds(2'000)) << lines.text();
  std::printf("operations resumed %lld ms after the event was committed\n", static_cast<long long>(took.count()));
  ASSERT_TRUE(load.goes_on());
  load.end();
  EXPECT_EQ(
      metric(runner->metrics(), R"(prism_pattern_backend_reconnect_total{pattern="order-consumer",backend="cache"})"),
      "1");

  // The file still names the dead server. The event was acknowledged, so it does not come again: a restart must know.
  runner.reset();
  runner = started(settings, file);
  EXPECT_TRUE(increments(*runner)()) << lines.text();
  // Once the file says something else, the file is newer than the event.
  RedisServer third;
  runner.reset();
  runner = started(settings, backends(dir, {{"cache", third.address()}}));
  EXPECT_TRUE(increments(*runner)()) << lines.text();
  EXPECT_EQ(third.command({"GET", "orders"}), "1");
}

TEST(ConsumerFailover, ASlotGoesRoundADeadBackendAndComesBackWhenItIsUpAgain) {
  RedisServer main, other;
  NatsServer server;
  RelayRunner agent(nats_sink(at(server)));
  TempDir dir;
  Lines lines;
  auto settings = runner_settings(server, {{"state_store", "cache", "primary", {"cache-b"}}}, lines);
  auto runner = started(settings, backends(dir, {{"cache", main.address()}, {"cache-b", other.address()}}));
  Load load(4, milliseconds(20), increments(*runner));
  ASSERT_TRUE(load.goes_on());
  const auto uses = [&](const std::string& backend) {
    return eventually([&] { return runner->status().slots[0].backend == backend; });
  };
  // Nothing is broken yet when the event says `down`: the way round costs no operation.
  agent.add(health("cache", 1, "down"));
  ASSERT_TRUE(uses("cache-b")) << lines.text();
  main.stop();
  ASSERT_TRUE(load.goes_on());
  EXPECT_EQ(load.failed(), 0) << lines.text();
  main.start();
  agent.add(health("cache", 2, "up"));
  ASSERT_TRUE(uses("cache")) << lines.text();
  ASSERT_TRUE(load.goes_on());
  EXPECT_EQ(load.failed(), 0) << lines.text();
}

TEST(ConsumerFailover, ABackendThatDiesBeforeAnyEventIsLeftAsSoonAsTheApplicationReportsIt) {
  RedisServer main, other;
  NatsServer server;
  TempDir dir;
  Lines lines;
  auto settings = runner_settings(server, {{"state_store", "cache", "primary", {"cache-b"}}}, lines);
  settings.breaker_first = milliseconds(500);
  auto runner = started(settings, backends(dir, {{"cache", main.address()}, {"cache-b", other.address()}}));
  Load load(4, milliseconds(20), increments(*runner));
  ASSERT_TRUE(load.goes_on());
  main.stop();
  ASSERT_TRUE(eventually([&] { return runner->status().slots[0].backend == "cache-b"; })) << lines.text();
  ASSERT_TRUE(load.goes_on());
  main.start();  // no event says so: the better backend is tried now and then
  EXPECT_TRUE(eventually([&] { return runner->status().slots[0].backend == "cache"; })) << lines.text();
}

TEST(ConsumerFailover, AReplicaIsNotTakenForASlotThatWritesUntilItWasPromoted) {
  Pair redis;
  NatsServer server;
  RelayRunner agent(nats_sink(at(server)));
  TempDir dir;
  Lines lines;
  auto settings = runner_settings(server, {{"state_store", "cache", "primary", {"cache-replica"}}}, lines);
  auto runner = started(
      settings, backends(dir, {{"cache", redis.primary.address()}, {"cache-replica", redis.replica.address()}}));
  Load load(4, milliseconds(20), increments(*runner));
  redis.primary.stop();
  ASSERT_TRUE(eventually([&] { return lines.contain("is not a primary"); })) << lines.text();
  redis.replica.command({"REPLICAOF", "NO", "ONE"});
  EXPECT_TRUE(eventually([&] { return runner->status().slots[0].backend == "cache-replica"; })) << lines.text();
  EXPECT_TRUE(load.goes_on());
}

TEST(ConsumerFailover, ADeletedBackendIsLeftAndTakenAgainWhenItIsCreated) {
  RedisServer redis;
  NatsServer server;
  RelayRunner agent(nats_sink(at(server)));
  TempDir dir;
  Lines lines;
  auto runner = started(runner_settings(server, {{"state_store", "cache", "primary", {}}}, lines),
                        backends(dir, {{"cache", redis.address()}}));
  agent.add(event_of("cache", 1, "deleted", core::ChangeType::deleted));
  ASSERT_TRUE(eventually([&] { return runner->slot("state_store") == nullptr; })) << lines.text();
  EXPECT_TRUE(lines.contain("backend cache was deleted")) << lines.text();
  EXPECT_EQ(runner->status().slots[0].last_error, "failed to bind slot state_store: backend cache was deleted");
  agent.add(event_of("cache", 2, "created", core::ChangeType::created));
  EXPECT_TRUE(eventually([&] { return runner->slot("state_store") != nullptr; })) << lines.text();
}

TEST(ConsumerFailover, FiftySlotsOfOneBackendReconnectSpreadOverTimeAndNotMoreThanEightAtOnce) {
  RedisServer redis;
  NatsServer server;
  RelayRunner agent(nats_sink(at(server)));
  TempDir dir;
  Lines lines;
  std::vector<dc::SlotBinding> slots;
  for (int i = 0; i < 50; ++i) slots.push_back({"slot-" + std::to_string(i), "cache", "", {}});
  auto runner = started(runner_settings(server, slots, lines), backends(dir, {{"cache", redis.address()}}));
  ASSERT_TRUE(subscribed(*runner));
  const auto began = Steady::now();
  agent.add(event_of("cache", 1, "endpoint.changed", core::ChangeType::endpoint_changed));
  const std::string series = R"(prism_pattern_backend_reconnect_total{pattern="order-consumer",backend="cache"})";
  ASSERT_TRUE(eventually([&] { return metric(runner->metrics(), series) == "50"; })) << lines.text();
  std::vector<std::int64_t> at;  // ms after the event
  for (const auto& slot : runner->status().slots) {
    at.push_back(std::chrono::duration_cast<milliseconds>(slot.connected_at - began).count());
  }
  std::sort(at.begin(), at.end());
  std::map<std::int64_t, int> in_100_ms;
  for (const auto each : at) ++in_100_ms[each / 100];
  int most = 0;
  for (const auto& [bucket, count] : in_100_ms) most = std::max(most, count);
  std::printf("50 slots: first after %lld ms, median %lld, last %lld; at most %d in 100 ms\n",
              static_cast<long long>(at[0]), static_cast<long long>(at[25]), static_cast<long long>(at[49]), most);
  EXPECT_GT(at[49] - at[0], 1'000) << "the window is 50 × 40 ms";
  EXPECT_LT(at[49], 10'000);
  EXPECT_LE(most, 20);
}

}  // namespace
}  // namespace driftd::test
