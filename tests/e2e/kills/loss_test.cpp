// SPDX-License-Identifier: Apache-2.0
// JetStream loses what it had acknowledged while the agent runs and 200 resources a second change.
#include "receivers.hpp"
#include "support/patience.hpp"
#include "world.hpp"

namespace driftd::test {
namespace {

using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

constexpr double kDetectedWithin = 60;  // seconds (docs/delivery.md, JetStream)
const std::string kDetected = "sink bus: the receiver lost what it had acknowledged";

class JetStreamLoss : public testing::Test {
 protected:
  JetStreamLoss() : world_("", "") {}

  void begin() {
    ASSERT_TRUE(world_.start_until_ready()) << world_.end_of_log();
    ASSERT_TRUE(eventually([&] { return world_.agent.established({"platform"}); })) << world_.end_of_log();
    world_.writer.start();
  }
  /// Waits for the changes of this many seconds.
  void pass(int for_seconds) {
    for (int i = 0; i < for_seconds; ++i) ASSERT_TRUE(world_.writer.wait_for(KillWorld::kPerSecond));
  }
  Deliveries stored() const { return from_nats(stream_contents(world_.nats.url(), "DRIFT"), Runs()); }

  bool detected() const { return world_.agent.log().find(kDetected) != std::string::npos; }
  /// Waits until the agent says that its receiver lost something, and returns the seconds since `from`.
  double detection(Clock::time_point from) const {
    EXPECT_TRUE(eventually([this] { return detected(); }, seconds(90))) << world_.end_of_log();
    return std::chrono::duration<double>(Clock::now() - from).count();
  }

  void expect_nothing_lost(const std::string& how, double detected, std::size_t taken) {
    world_.writer.stop();
    const auto lines = world_.complete(
        "file", [&] { return from_file(world_.lines(), world_.file_sizes); }, seconds(60));
    const auto got = world_.complete(
        "jetstream", [&] { return stored(); }, seconds(120));
    EXPECT_EQ(out_of_order(got), "");
    EXPECT_EQ(ambiguous(got), "");
    EXPECT_EQ(holes(got), "");
    EXPECT_EQ(different(lines, got, false), "");
    EXPECT_EQ(lines.size(), distinct(lines)) << "a loss of one receiver concerns no other";
    EXPECT_LE(detected, kDetectedWithin * kPatience);
    std::printf("%s: %zu messages were lost, noticed after %.2f s; %zu changes at %.0f/s, all stored, %zu repeated\n",
                how.c_str(), taken, detected, world_.writer.count(), world_.writer.per_second(),
                got.size() - distinct(got));
  }

  KillWorld world_;
};

TEST_F(JetStreamLoss, OfItsLastMinutesIsFoundAndMadeGood) {
  const int for_seconds = number_from_env("DRIFTD_ROLLED_BACK_SECONDS", 15);
  begin();
  pass(3);
  ASSERT_TRUE(eventually([&] { return !stored().empty(); }));
  const std::size_t kept = stored().size();
  world_.nats.stop();
  world_.nats.keep();
  world_.nats.start();
  pass(for_seconds);
  const std::size_t before = stored().size();
  ASSERT_GT(before, kept + static_cast<std::size_t>(for_seconds) * KillWorld::kPerSecond / 2);
  ASSERT_FALSE(detected()) << "nothing was lost so far";
  world_.nats.sigkill();
  world_.nats.put_back();
  const auto from = Clock::now();
  world_.nats.start();
  const double detected = detection(from);
  pass(3);
  expect_nothing_lost("rolled back by " + std::to_string(for_seconds) + " s", detected, before - kept);
}

TEST_F(JetStreamLoss, OfEverythingIsFoundAndMadeGood) {
  begin();
  pass(5);
  const std::size_t before = stored().size();
  ASSERT_FALSE(detected()) << "nothing was lost so far";
  world_.nats.sigkill();
  world_.nats.wipe();
  const auto from = Clock::now();
  world_.nats.start();
  const double detected = detection(from);
  pass(3);
  expect_nothing_lost("wiped", detected, before);
}

/// The connection stays, and nothing new is published that could show it.
TEST_F(JetStreamLoss, ByADeletedStreamIsFoundInTheQuiet) {
  begin();
  pass(3);
  world_.writer.stop();
  const std::size_t before = world_
                                 .complete(
                                     "jetstream", [&] { return stored(); }, seconds(60))
                                 .size();
  ASSERT_FALSE(detected()) << "nothing was lost so far";
  change_stream(world_.nats.url(), "DELETE", {});
  const double detected = detection(Clock::now());
  expect_nothing_lost("deleted", detected, before);
}

}  // namespace
}  // namespace driftd::test
