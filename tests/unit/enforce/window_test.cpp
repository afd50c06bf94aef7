// SPDX-License-Identifier: Apache-2.0
#include "core/enforce/window.hpp"

#include <gmock/gmock.h>

namespace driftd::test {
namespace {

using core::in_window;
using core::next_window;
using core::parse_window;
using testing::HasSubstr;

constexpr Nanos kOneSecond = 1'000'000'000;
constexpr std::chrono::seconds kUtc{0};

/// 2026-11-23 is a Monday.
Nanos at(int day, int hour, int minute) {
  constexpr Nanos kMonday = 1'795'392'000 * kOneSecond;
  return kMonday + ((day * 24 + hour) * 60 + minute) * 60 * kOneSecond;
}

std::vector<core::MaintenanceWindow> windows(std::string_view text) {
  auto one = parse_window(text);
  EXPECT_TRUE(one) << one.error().message;
  return {one.value_or(core::MaintenanceWindow{})};
}

TEST(MaintenanceWindow, OverMidnightBelongsToTheDayOnWhichItBegins) {
  const auto nights = windows("Mon-Fri 22:00-04:00 UTC");
  EXPECT_FALSE(in_window(nights, at(0, 3, 0), kUtc)) << "Sunday's night has no window";
  EXPECT_FALSE(in_window(nights, at(0, 21, 59), kUtc));
  EXPECT_TRUE(in_window(nights, at(0, 22, 0), kUtc));
  EXPECT_TRUE(in_window(nights, at(1, 3, 59), kUtc));
  EXPECT_FALSE(in_window(nights, at(1, 4, 0), kUtc));
  EXPECT_TRUE(in_window(nights, at(5, 3, 59), kUtc)) << "Friday's night ends on Saturday";
  EXPECT_FALSE(in_window(nights, at(5, 22, 0), kUtc));
}

TEST(MaintenanceWindow, DaysMayWrapAroundAndBeListed) {
  const auto weekend = windows("Sat-Mon,Wed 01:00-02:00");
  for (const int day : {0, 2, 5, 6}) EXPECT_TRUE(in_window(weekend, at(day, 1, 30), kUtc)) << day;
  for (const int day : {1, 3, 4}) EXPECT_FALSE(in_window(weekend, at(day, 1, 30), kUtc)) << day;
}

TEST(MaintenanceWindow, WithoutDaysIsEveryDayAndEqualTimesAreAWholeDay) {
  for (int day = 0; day < 7; ++day) EXPECT_TRUE(in_window(windows("09:00-10:00"), at(day, 9, 0), kUtc));
  EXPECT_TRUE(in_window(windows("Mon 00:00-24:00"), at(0, 23, 59), kUtc));
  EXPECT_FALSE(in_window(windows("Mon 00:00-24:00"), at(1, 0, 0), kUtc));
  EXPECT_TRUE(in_window(windows("Mon 06:00-06:00"), at(1, 5, 59), kUtc));
}

TEST(MaintenanceWindow, LocalCountsWithTheOffset) {
  const auto night = windows("Mon 22:00-23:00 local");
  EXPECT_TRUE(in_window(night, at(0, 21, 30), std::chrono::hours(1)));
  EXPECT_FALSE(in_window(night, at(0, 22, 30), std::chrono::hours(1)));
  EXPECT_EQ(next_window(night, at(0, 12, 0), std::chrono::hours(1)), at(0, 21, 0));
}

TEST(MaintenanceWindow, SaysWhenTheNextOpens) {
  const auto two = std::vector{*parse_window("Wed 10:00-11:00"), *parse_window("Tue 23:00-01:00 UTC")};
  EXPECT_EQ(next_window(two, at(0, 12, 0), kUtc), at(1, 23, 0));
  EXPECT_EQ(next_window(two, at(2, 2, 0), kUtc), at(2, 10, 0));
  EXPECT_EQ(next_window(two, at(2, 10, 0), kUtc), at(8, 23, 0)) << "the one that is open now does not open";
  EXPECT_EQ(next_window({}, at(0, 0, 0), kUtc), std::nullopt);
}

TEST(MaintenanceWindow, RefusesWhatItCannotMean) {
  for (const char* text :
       {"", "Mon", "Mon-Fri", "22:00", "22:00-", "25:00-26:00", "24:00-01:00", "Mon 1:00-2:00", "Mon,,Tue 01:00-02:00",
        "Montag 01:00-02:00", "Mon 01:00-02:00 Europe/Berlin", "Mon Tue 01:00-02:00", "01:60-02:00"}) {
    const auto window = parse_window(text);
    ASSERT_FALSE(window) << text;
    EXPECT_THAT(window.error().message, HasSubstr("expected [DAYS] HH:MM-HH:MM [UTC|local]"));
  }
}

}  // namespace
}  // namespace driftd::test
