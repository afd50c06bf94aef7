// SPDX-License-Identifier: Apache-2.0
// A broker that stands still: it keeps its connections, but reads nothing and answers nothing.
#include <gtest/gtest.h>
#include <csignal>

#include "sinks/nats/nats_sink.hpp"
#include "support/nats.hpp"
#include "support/patience.hpp"
#include "support/relay_runner.hpp"
#include "support/sink_events.hpp"

namespace driftd::test {
namespace {

using std::chrono::seconds;

class StandingBroker : public testing::TestWithParam<bool> {
 protected:
  NatsServer server;
  std::optional<RelayRunner> runner;

  StandingBroker() {
    runner.emplace([this](auto core, auto io, const Clock&) {
      sinks::NatsSettings settings;
      settings.servers = {server.url()};
      settings.jetstream = GetParam();
      settings.views = false;
      return sinks::open_nats("s", settings, core, io);
    });
  }
  ~StandingBroker() override { server.signal(SIGCONT); }
  void add(std::size_t bytes) {
    core::StoredEvent event = sample_stored(++added_, "config.updated", core::ChangeType::updated);
    event.key = "k" + std::to_string(added_);
    event.stamp.id += "-" + std::to_string(added_);
    event.payload.assign(bytes, 'p');
    runner->add(std::move(event));
  }
  bool settled() {
    return runner->on_core([this] { return runner->outbox.cursors["s"].low_water; }) == added_;
  }
  std::int64_t added_ = 0;
};

/// More bytes wait than the buffers of the sockets take.
TEST_P(StandingBroker, HoldsNeitherTheCoreThreadNorTheIoThreadsAndGetsAllWhenItGoesOn) {
  add(100);
  ASSERT_TRUE(eventually([this] { return settled(); }));
  server.signal(SIGSTOP);
  for (int i = 0; i < 80; ++i) {
    if (runner->soon_on_core().wait_for(seconds(2 * kPatience)) != std::future_status::ready) break;
    add(500'000);
  }
  // for four seconds, both executors must still take and do new work
  bool core = true, io = true;
  const auto until = std::chrono::steady_clock::now() + seconds(4);
  while (core && io && std::chrono::steady_clock::now() < until) {
    core = runner->soon_on_core().wait_for(seconds(kPatience)) == std::future_status::ready;
    io = runner->soon_on_io().wait_for(seconds(kPatience)) == std::future_status::ready;
  }
  server.signal(SIGCONT);
  EXPECT_TRUE(core) << "the core thread stood still";
  EXPECT_TRUE(io) << "all io threads stood still";
  EXPECT_TRUE(eventually([this] { return settled(); }, seconds(60)));
  EXPECT_EQ(added_, 81);
}

INSTANTIATE_TEST_SUITE_P(Nats, StandingBroker, testing::Bool(),
                         [](const auto& kind) { return kind.param ? "JetStream" : "Core"; });

}  // namespace
}  // namespace driftd::test
