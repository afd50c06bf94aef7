// SPDX-License-Identifier: Apache-2.0
#include "base/instant.hpp"

#include <gtest/gtest.h>
#include <string>

namespace driftd {
namespace {

std::string shown(std::string_view text) {
  const auto at = parse_instant(text);
  return at ? std::to_string(at->seconds) + "." + std::to_string(at->nanos) : "none";
}

TEST(Instant, IsReadInEachFormAndZone) {
  EXPECT_EQ(shown("1970-01-01T00:00:00Z"), "0.0");
  EXPECT_EQ(shown("2026-11-21T03:39:16.5Z"), "1795232356.500000000");
  for (const auto* same : {"2026-11-21T05:39:16+02:00", "2026-11-21 03:39:16+00", "2026-11-20t22:39:16-0500"}) {
    EXPECT_EQ(shown(same), "1795232356.0") << same;
  }
  EXPECT_EQ(shown("9999-12-31T23:59:59Z"), "253402300799.0") << "beyond what nanoseconds reach";
}

TEST(Instant, WhatIsNoMomentIsNone) {
  for (const auto* bad :
       {"", "now", "2026-11-21", "2026-11-21T03:39:16", "2026-02-30T00:00:00Z", "2026-11-21T25:00:00Z",
        "2026-11-21T03:39:16+2:00", "2026-11-21T03:39:16+02:60", "2026-11-21T03:39:16Zulu", "2026-11-21T03:39:16.Z"}) {
    EXPECT_EQ(shown(bad), "none") << bad;
  }
}

/// A moment that 64 bits of nanoseconds do not reach must not become another one.
TEST(Instant, InNanosecondsEndsWhereTheyEnd) {
  EXPECT_EQ(parse_nanos("1970-01-01T00:00:01.5Z"), 1'500'000'000);
  EXPECT_EQ(parse_nanos("1969-12-31T23:59:59Z"), -1'000'000'000);
  EXPECT_TRUE(parse_nanos("2262-04-11T23:47:15Z"));
  EXPECT_FALSE(parse_nanos("2262-04-12T00:00:00Z"));
  EXPECT_FALSE(parse_nanos("1600-01-01T00:00:00Z"));
  EXPECT_FALSE(parse_nanos("yesterday"));
}

}  // namespace
}  // namespace driftd
