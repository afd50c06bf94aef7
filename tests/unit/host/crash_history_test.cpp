// SPDX-License-Identifier: Apache-2.0
#include "host/crash_history.hpp"

#include <gtest/gtest.h>

namespace driftd::host {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

HostOptions short_pauses() {
  HostOptions options;
  options.restart_first = milliseconds(100);
  options.restart_max = milliseconds(100'000);
  options.parked = minutes(10);
  options.crashes_to_park = 3;
  return options;
}

constexpr CrashHistory::Time kStart{std::chrono::hours(1)};

std::uint64_t crashes_at(const CrashHistory& history, CrashHistory::Time now) {
  core::WorkerStatus status;
  history.add_to(status, now);
  return status.crashes;
}

TEST(CrashHistory, TheThirdCrashWithinTenMinutesParksTheWorker) {
  CrashHistory history(short_pauses());
  EXPECT_FALSE(history.add(kStart));
  EXPECT_FALSE(history.add(kStart + seconds(1)));
  EXPECT_TRUE(history.add(kStart + minutes(9)));
}

TEST(CrashHistory, ACrashOlderThanTenMinutesNoLongerCounts) {
  CrashHistory history(short_pauses());
  history.add(kStart);
  history.add(kStart + minutes(5));
  EXPECT_EQ(crashes_at(history, kStart + minutes(10)), 2u);
  EXPECT_EQ(crashes_at(history, kStart + minutes(11)), 1u);
  EXPECT_FALSE(history.add(kStart + minutes(11)));
}

TEST(CrashHistory, ThePausesGrowUntilAWorkerWasOpenForAMinute) {
  CrashHistory history(short_pauses());
  history.add(kStart);
  EXPECT_LE(history.next_wait(), milliseconds(120));
  EXPECT_GE(history.next_wait(), milliseconds(160));
  history.note_open(kStart + seconds(1));
  history.add(kStart + seconds(30));
  EXPECT_GE(history.next_wait(), milliseconds(320));
  history.note_open(kStart + seconds(40));
  history.add(kStart + seconds(100));
  EXPECT_LE(history.next_wait(), milliseconds(120));
}

TEST(CrashHistory, AParkedWorkerStartsWithoutItsCrashes) {
  CrashHistory history(short_pauses());
  for (int i = 0; i < 3; ++i) history.add(kStart);
  history.park(1'000);
  EXPECT_EQ(history.parked_until(), 1'000 + std::chrono::nanoseconds(minutes(10)).count());
  EXPECT_EQ(history.next_wait(), minutes(10));
  history.note_restart();
  EXPECT_EQ(history.parked_until(), 0);
  EXPECT_EQ(crashes_at(history, kStart), 0u);
  EXPECT_FALSE(history.add(kStart));
}

}  // namespace
}  // namespace driftd::host
