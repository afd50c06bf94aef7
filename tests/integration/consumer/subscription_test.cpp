// SPDX-License-Identifier: Apache-2.0
// Which events of its backends a pattern receives: every change that it must act on, once, also those that were
// published while it was away.
#include "redis_slot.hpp"
#include "support/redis.hpp"
#include "world.hpp"

namespace driftd::test {
namespace {

using core::ChangeType;

/// A slot that connects to nothing and counts what is asked of it: here the events are the subject, not the server.
class CountingFactory final : public dc::SlotFactory {
 public:
  class CountingSlot final : public dc::Slot {
   public:
    dc::Status update_credentials(const dc::SlotConfig&) override { return {}; }
    void disconnect() override {}
  };
  dc::Result<std::shared_ptr<dc::Slot>> connect(const dc::SlotBinding&, const dc::SlotConfig&) override {
    return std::make_shared<CountingSlot>();
  }
};

class ConsumerSubscription : public testing::Test {
 protected:
  std::unique_ptr<dc::PatternRunner> start() {
    auto settings = runner_settings(server_, {{"state_store", "cache", "", {}}}, lines_);
    settings.checkpoint = dir_.file("checkpoint.json");
    auto runner = dc::PatternRunner::create(settings, dc::file_source(file_), std::make_shared<CountingFactory>());
    if (!runner) throw std::runtime_error(runner.error().message);
    const auto done = (*runner)->start();
    if (!done) throw std::runtime_error(done.error().message);
    return std::move(*runner);
  }
  std::string received(const dc::PatternRunner& runner) const {
    return metric(runner.metrics(),
                  R"(prism_pattern_backend_event_received_total{pattern="order-consumer",backend="cache"})");
  }
  bool handled(const std::string& type, std::int64_t count = 1) {
    return eventually([&] { return lines_.count(type + " for backend cache") == count; });
  }

  NatsServer server_;
  TempDir dir_;
  Lines lines_;
  std::string file_ = dir_.write("backends.json", R"({"state_store": {"type": "redis", "endpoint": "nowhere:1"}})");
};

TEST_F(ConsumerSubscription, EachChangeThatMustBeActedOnArrivesAndNoEventOfAnotherBackendDoes) {
  RelayRunner agent(nats_sink(at(server_)));
  const auto runner = start();
  agent.add(event_of("cache-2", 1, "updated", ChangeType::updated));
  const std::vector<std::pair<const char*, ChangeType>> changes = {
      {"created", ChangeType::created},
      {"updated", ChangeType::updated},
      {"credentials.rotated", ChangeType::credential_rotated},
      {"endpoint.changed", ChangeType::endpoint_changed},
      {"config.updated", ChangeType::config_drift_detected},
      {"drift.decided", ChangeType::unspecified}};
  std::int64_t n = 0;
  for (const auto& [what, type] : changes) agent.add(event_of("cache", ++n, what, type));
  agent.add(health("cache", ++n, "down"));
  agent.add(event_of("cache", ++n, "deleted", ChangeType::deleted));
  for (const char* type :
       {"CREATED", "UPDATED", "CREDENTIAL_ROTATED", "ENDPOINT_CHANGED", "HEALTH_CHANGED", "DELETED"}) {
    EXPECT_TRUE(handled(type)) << type << "\n" << lines_.text();
  }
  EXPECT_EQ(received(*runner), "8");
  EXPECT_FALSE(lines_.contain("cache-2")) << lines_.text();
}

TEST_F(ConsumerSubscription, WhatHappenedWhileThePatternWasAwayIsHandledAndNothingTwice) {
  RelayRunner agent(nats_sink(at(server_)));
  auto runner = start();
  agent.add(event_of("cache", 1, "updated", ChangeType::updated));
  ASSERT_TRUE(handled("UPDATED")) << lines_.text();
  ASSERT_TRUE(subscribed(*runner));
  runner.reset();
  for (std::int64_t n = 2; n <= 101; ++n) agent.add(event_of("cache", n, "updated", ChangeType::updated));
  ASSERT_TRUE(delivered(agent, 101));
  runner = start();
  EXPECT_TRUE(handled("UPDATED", 101)) << lines_.text();
  EXPECT_EQ(received(*runner), "100") << "counted from this start on";
}

TEST_F(ConsumerSubscription, AnEventThatComesAgainOrTooLateChangesNothing) {
  RelayRunner agent(nats_sink(at(server_)));
  const auto runner = start();
  agent.add(event_of("cache", 5, "updated", ChangeType::updated));
  ASSERT_TRUE(handled("UPDATED")) << lines_.text();
  auto replay = event_of("cache", 5, "updated", ChangeType::updated);
  replay.replay = true;  // another Nats-Msg-Id, the same ce-id
  agent.add(replay);
  agent.add(event_of("cache", 4, "endpoint.changed", ChangeType::endpoint_changed));
  agent.add(event_of("cache", 6, "credentials.rotated", ChangeType::credential_rotated));
  ASSERT_TRUE(handled("CREDENTIAL_ROTATED")) << lines_.text();
  EXPECT_EQ(received(*runner), "4");
  EXPECT_EQ(lines_.count("UPDATED for backend"), 1) << lines_.text();
  EXPECT_FALSE(lines_.contain("ENDPOINT_CHANGED")) << lines_.text();
}

TEST_F(ConsumerSubscription, AServerThatIsKilledOrNotThereYetIsWaitedFor) {
  server_.sigkill();
  auto runner = start();  // the slots are bound without it
  server_.start();
  RelayRunner agent(nats_sink(at(server_)));
  agent.add(event_of("cache", 1, "updated", ChangeType::updated));
  ASSERT_TRUE(handled("UPDATED")) << lines_.text();
  server_.sigkill();
  ASSERT_TRUE(eventually([&] { return !runner->status().subscriptions[0].connected; }));
  agent.add(event_of("cache", 2, "credentials.rotated", ChangeType::credential_rotated));
  server_.start();
  EXPECT_TRUE(handled("CREDENTIAL_ROTATED")) << lines_.text();
}

TEST_F(ConsumerSubscription, AStreamThatWasWipedIsFollowedFromItsBeginning) {
  RelayRunner agent(nats_sink(at(server_)));
  auto runner = start();
  for (std::int64_t n = 1; n <= 20; ++n) agent.add(event_of("cache", n, "updated", ChangeType::updated));
  ASSERT_TRUE(handled("UPDATED", 20)) << lines_.text();
  server_.sigkill();
  server_.wipe();
  server_.start();
  agent.add(event_of("cache", 21, "credentials.rotated", ChangeType::credential_rotated));
  EXPECT_TRUE(handled("CREDENTIAL_ROTATED")) << lines_.text();
  EXPECT_EQ(lines_.count("UPDATED for backend"), 20) << "the sink publishes all again; they are known";
}

TEST_F(ConsumerSubscription, AMessageThatIsNoEventIsSkippedAndReported) {
  RelayRunner agent(nats_sink(at(server_)));
  auto runner = start();
  agent.add(event_of("cache", 1, "updated", ChangeType::updated));
  ASSERT_TRUE(handled("UPDATED")) << lines_.text();
  auto bad = event_of("cache", 2, "updated", ChangeType::updated);
  bad.payload = "\xff\xff not protobuf";
  agent.add(bad);
  agent.add(event_of("cache", 3, "credentials.rotated", ChangeType::credential_rotated));
  EXPECT_TRUE(handled("CREDENTIAL_ROTATED")) << lines_.text();
  EXPECT_TRUE(lines_.contain("is not a driftd.v1.BackendChangeEvent; it is skipped")) << lines_.text();
}

TEST_F(ConsumerSubscription, AGapLoadsEveryBackendAgain) {
  RelayRunner agent(nats_sink(at(server_)));
  auto runner = start();
  const auto before = runner->slot("state_store");
  dir_.write("backends.json", R"({"state_store": {"type": "redis", "endpoint": "elsewhere:1"}})");
  core::AgentEvent gap;
  gap.agent = "a";
  gap.cluster = "default";
  gap.what = "gap";
  agent.add(proto::to_stored_event(gap, {"gap0123456789abcdefgh-1", 1, 1, 1'763'700'000'000'000'000, 1}));
  EXPECT_TRUE(eventually([&] { return runner->slot("state_store") != before; })) << lines_.text();
}

TEST_F(ConsumerSubscription, AnEventOfABackendWithoutASlotIsAnErrorByName) {
  const auto runner = start();
  const auto done = runner->handle_backend_event({"id", "", {1, 1}, "other", dc::ChangeType::updated, "", ""});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message, "no slot found for backend other");
  EXPECT_EQ(done.error().code, dc::Code::not_found);
}

TEST_F(ConsumerSubscription, TwoProcessesWithOneCheckpointAreRefused) {
  const auto runner = start();
  auto settings = runner_settings(server_, {{"state_store", "cache", "", {}}}, lines_);
  settings.checkpoint = dir_.file("checkpoint.json");
  const auto second = dc::PatternRunner::create(settings, dc::file_source(file_), std::make_shared<CountingFactory>());
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message.find("is used by another process"), std::string::npos) << second.error().message;
}

}  // namespace
}  // namespace driftd::test
