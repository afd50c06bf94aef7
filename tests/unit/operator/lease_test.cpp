// SPDX-License-Identifier: Apache-2.0
#include "operator/lease.hpp"

#include <gtest/gtest.h>
#include <random>

namespace driftd::op {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr const char* kWall = "2026-11-27T06:40:00.000000Z";

struct LeaseElection : testing::Test {
  Election::Time now{};
  Election ours{"a", {}};
  static json lease(const json& spec) { return {{"metadata", {{"resourceVersion", "1"}}}, {"spec", spec}}; }
  static json held_by(const std::string& holder, const std::string& renewed = kWall) {
    return lease(
        {{"holderIdentity", holder}, {"leaseDurationSeconds", 15}, {"renewTime", renewed}, {"leaseTransitions", 3}});
  }
};

TEST_F(LeaseElection, ALeaseThatDoesNotExistIsMade) {
  const auto spec = ours.step(std::nullopt, now, kWall);
  ASSERT_TRUE(spec);
  EXPECT_EQ(*spec, (json{{"holderIdentity", "a"},
                         {"leaseDurationSeconds", 15},
                         {"acquireTime", kWall},
                         {"renewTime", kWall},
                         {"leaseTransitions", 0}}));
  EXPECT_FALSE(ours.leads(now)) << "it is not stored yet";
  ours.stored(now);
  EXPECT_TRUE(ours.leads(now));
}

TEST_F(LeaseElection, AnothersLeaseIsTakenWhenItWasSeenUnchangedForItsDuration) {
  // The wall clock of its holder says that it ended long ago, which means nothing.
  const json theirs = held_by("b", "2020-01-01T00:00:00.000000Z");
  EXPECT_FALSE(ours.step(theirs, now, kWall));
  EXPECT_FALSE(ours.step(theirs, now + milliseconds(14'999), kWall));
  const auto spec = ours.step(theirs, now + seconds(15), kWall);
  ASSERT_TRUE(spec);
  EXPECT_EQ(spec->at("holderIdentity"), "a");
  EXPECT_EQ(spec->at("leaseTransitions"), 4);
  EXPECT_EQ(spec->at("acquireTime"), kWall);
}

TEST_F(LeaseElection, EachRenewalOfAnotherBeginsItsDurationAgain) {
  EXPECT_FALSE(ours.step(held_by("b", "1"), now, kWall));
  EXPECT_FALSE(ours.step(held_by("b", "2"), now + seconds(14), kWall));
  EXPECT_FALSE(ours.step(held_by("b", "2"), now + seconds(28), kWall));
  EXPECT_TRUE(ours.step(held_by("b", "2"), now + seconds(29), kWall));
}

TEST_F(LeaseElection, OneThatWasGivenUpIsTakenAtOnce) {
  const json given_up = lease(Election("b", {}).released(held_by("b").at("spec"), kWall));
  EXPECT_TRUE(ours.step(given_up, now, kWall));
}

TEST_F(LeaseElection, ALeaderThatCannotRenewStopsBeforeAnotherOneMayAct) {
  ASSERT_TRUE(ours.step(std::nullopt, now, kWall));
  ours.stored(now);
  EXPECT_TRUE(ours.leads(now + milliseconds(9'999)));
  EXPECT_FALSE(ours.lost(now + milliseconds(9'999)));
  EXPECT_FALSE(ours.leads(now + seconds(10)));
  EXPECT_TRUE(ours.lost(now + seconds(10)));
  EXPECT_FALSE(Election("c", {}).lost(now + seconds(99))) << "it never led";
}

TEST_F(LeaseElection, AnAttemptThatHangsEndsWhenTheLeadershipDoes) {
  EXPECT_EQ(ours.attempt_until(now), now + seconds(5)) << "it does not lead";
  ASSERT_TRUE(ours.step(std::nullopt, now, kWall));
  ours.stored(now);
  EXPECT_EQ(ours.attempt_until(now + seconds(2)), now + seconds(7));
  EXPECT_EQ(ours.attempt_until(now + seconds(9)), now + seconds(10));
  EXPECT_EQ(ours.attempt_until(now + seconds(12)), now + seconds(17)) << "it does not lead any more";
}

TEST_F(LeaseElection, ALeaderSeesThatAnotherOneTookTheLease) {
  ASSERT_TRUE(ours.step(std::nullopt, now, kWall));
  ours.stored(now);
  EXPECT_FALSE(ours.is_taken());
  EXPECT_FALSE(ours.step(held_by("b"), now + seconds(1), kWall));
  EXPECT_TRUE(ours.is_taken());
}

TEST_F(LeaseElection, ALeaseOfAnotherFormIsReplaced) {
  EXPECT_TRUE(ours.step(lease("text"), now, kWall));
  EXPECT_TRUE(ours.step(lease({{"holderIdentity", 7}}), now, kWall));
  EXPECT_TRUE(ours.step(json{{"metadata", json::object()}}, now, kWall));
}

/// Three processes and one store with optimistic concurrency. Reads and writes are separate steps that interleave in
/// any order, processes pause and die, and each has a clock that began at another time.
TEST(LeaseElections, NeverDoTwoLeadAndSomebodyLeadsWhenAllIsWell) {
  constexpr milliseconds kTick{100};
  for (std::uint32_t seed = 0; seed < 2'000; ++seed) {
    std::mt19937 random(seed);
    struct Process {
      Election election;
      milliseconds offset;  ///< of its clock
      std::optional<json> read{};
      int read_version = 0;
      bool has_read = false;
      int paused = 0;  ///< ticks
    };
    std::vector<Process> all;
    for (const char* name : {"a", "b", "c"}) {
      all.push_back({Election(name, {}), milliseconds(static_cast<int>(random() % 1'000'000))});
    }
    std::optional<json> stored;
    int version = 0, without = 0;
    for (int tick = 0; tick < 600; ++tick) {
      const auto clock = [&](const Process& p) { return Election::Time{} + kTick * tick + p.offset; };
      Process& p = all[random() % all.size()];
      if (p.paused > 0) {
        --p.paused;
      } else if (random() % 60 == 0) {
        p.paused = static_cast<int>(random() % 300);
      } else if (!p.has_read) {
        p.read = stored;
        p.read_version = version;
        p.has_read = true;
      } else {
        p.has_read = false;
        const auto asked = clock(p);
        const auto spec = p.election.step(p.read ? std::optional<json>(json{{"spec", *p.read}}) : std::nullopt, asked,
                                          std::to_string(tick));
        if (spec && p.read_version == version) {
          stored = *spec;
          ++version;
          p.election.stored(asked);
        }
      }
      int leaders = 0;
      for (const auto& each : all) leaders += each.election.leads(clock(each)) ? 1 : 0;
      ASSERT_LE(leaders, 1) << "seed " << seed << ", tick " << tick;
      bool any_pause = false;
      for (const auto& each : all) any_pause = any_pause || each.paused > 0;
      without = leaders == 0 && !any_pause ? without + 1 : 0;
      ASSERT_LT(without, 200) << "nobody leads for 20 s although all run; seed " << seed << ", tick " << tick;
    }
  }
}

}  // namespace
}  // namespace driftd::op
