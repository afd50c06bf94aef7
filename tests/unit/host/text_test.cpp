// SPDX-License-Identifier: Apache-2.0
#include "host/text.hpp"

#include <gtest/gtest.h>
#include <vector>

#include "host/line_log.hpp"
#include "host/rate.hpp"

namespace driftd::host {
namespace {

using std::chrono::milliseconds;

TEST(Text, MalformedUtf8IsToldFromWellFormed) {
  for (const char* good : {"", "plain", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80"}) EXPECT_TRUE(is_utf8(good));
  for (const char* bad : {"\x80", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82", "a\xff"})
    EXPECT_FALSE(is_utf8(bad));
  EXPECT_EQ(printable("a\xff\xc3\xa9z", 100), "a?\xc3\xa9z");
  EXPECT_LE(printable(std::string(100, 'x'), 10).size(), 10u);
}

TEST(Text, WhatALibraryWritesOnSeveralLinesIsASentence) {
  EXPECT_EQ(as_sentence("connection failed:\r\n\tIs the server running\ton that host?\n"),
            "connection failed: Is the server running on that host?");
  EXPECT_EQ(as_sentence(" \n\t "), "");
  EXPECT_EQ(as_sentence("as it is"), "as it is");
}

TEST(Text, SecretsLeaveTextsLongestFirst) {
  const Scrubber scrubber({{"t1", "pass"}, {"t2", "password-is-long"}, {"t3", "ab"}});
  EXPECT_EQ(scrubber.text("a pass, a password-is-long, ab"), "a [REDACTED], a [REDACTED], ab");
}

TEST(Text, ADocumentKeepsShortSecretsWhichAreAlsoNames) {
  const Scrubber scrubber({{"t1", "postgres"}, {"t2", "quoted\"secret-text"}});
  EXPECT_EQ(scrubber.document(R"({"db":"postgres","x":"quoted\"secret-text"})"),
            R"({"db":"postgres","x":"[REDACTED]"})");
}

TEST(LineLog, AFloodIsCountedAndDropped) {
  std::vector<std::string> lines;
  LineLog log([&](std::string line) { lines.push_back(std::move(line)); });
  const auto start = std::chrono::steady_clock::time_point(std::chrono::hours(1));
  for (int i = 0; i < 1'000'000; ++i) log.feed("0123456789\n", start);
  EXPECT_EQ(lines.size(), 50u);
  EXPECT_EQ(log.dropped_bytes(), 11u * (1'000'000 - 50));
  log.feed("later\n", start + std::chrono::seconds(1));
  EXPECT_EQ(lines.at(50), "(999950 lines dropped before this one)");
  EXPECT_EQ(lines.at(51), "later");
}

TEST(LineLog, ALineWithoutEndIsCut) {
  std::vector<std::string> lines;
  LineLog log([&](std::string line) { lines.push_back(std::move(line)); });
  const auto start = std::chrono::steady_clock::time_point(std::chrono::hours(1));
  for (int i = 0; i < 1000; ++i) log.feed(std::string(10'000, 'x'), start);
  log.finish(start);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0], std::string(1024, 'x') + " (9998976 bytes cut)");
}

TEST(Rate, ABurstPassesAndTheRestWaits) {
  Rate rate;
  const auto now = Rate::Clock::time_point(std::chrono::hours(1));
  EXPECT_EQ(rate.take(100, now), now);
  EXPECT_EQ(rate.take(1, now), now + milliseconds(20));
  EXPECT_EQ(rate.take(5, now), now + milliseconds(120));
  EXPECT_EQ(rate.take(1, now + std::chrono::seconds(10)), now + std::chrono::seconds(10));
}

}  // namespace
}  // namespace driftd::host
