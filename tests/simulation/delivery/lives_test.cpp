// SPDX-License-Identifier: Apache-2.0
// Two thousand hours of an agent, each from its own seed, in shards that ctest runs beside each other.
#include <gtest/gtest.h>
#include <cstdlib>

#include "base/log.hpp"
#include "simulation/delivery/world.hpp"

namespace driftd::sim {
namespace {

constexpr std::uint64_t kSeeds = 2'000, kShards = 8;

/// A number of the environment; `otherwise` if it is not set.
std::uint64_t number_from(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

std::string report(std::uint64_t seed, const Oracle& oracle) {
  std::string out = "seed " + std::to_string(seed) +
                    " of the simulation fails. Replay it with\n  DRIFTD_SIMULATION_SEED=" + std::to_string(seed) +
                    " build/release/bin/simulation_delivery_test --gtest_filter='Lives.OneSeed'\n";
  for (const auto& line : oracle.complaints()) out += "  " + line + "\n";
  out += "The last lines of its trace (nanoseconds of simulated time):\n";
  for (const auto& line : oracle.last_lines()) out += "  " + line + "\n";
  return out;
}

/// Returns the trace of a life in which everything was right.
std::uint64_t live(std::uint64_t seed) {
  World world(seed);
  world.run();
  if (!world.oracle().complaints().empty()) ADD_FAILURE() << report(seed, world.oracle());
  return world.oracle().trace();
}

class Shards : public testing::TestWithParam<std::uint64_t> {
 protected:
  void SetUp() override { log::configure({.level = "off"}); }
};

TEST_P(Shards, LoseNothingAndNeverIdle) {
  const auto seeds = number_from("DRIFTD_SIMULATION_SEEDS", kSeeds);
  const auto first = number_from("DRIFTD_SIMULATION_FIRST", 1);
  for (auto seed = first + GetParam(); seed < first + seeds && !HasFailure(); seed += kShards) live(seed);
}
INSTANTIATE_TEST_SUITE_P(Lives, Shards, testing::Range<std::uint64_t>(0, kShards));

TEST(Lives, TheSameSeedGivesTheSameTrace) {
  log::configure({.level = "off"});
  std::set<std::uint64_t> traces;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const auto trace = live(seed);
    EXPECT_EQ(trace, live(seed)) << "seed " << seed;
    traces.insert(trace);
  }
  EXPECT_EQ(traces.size(), 10U) << "different seeds must give different traces";
}

TEST(Lives, OneSeed) {
  const auto seed = number_from("DRIFTD_SIMULATION_SEED", 1);
  log::configure({.level = std::getenv("DRIFTD_SIMULATION_LOG") != nullptr ? "debug" : "off"});
  std::printf("seed %llu, trace %016llx\n", static_cast<unsigned long long>(seed),
              static_cast<unsigned long long>(live(seed)));
}

}  // namespace
}  // namespace driftd::sim
