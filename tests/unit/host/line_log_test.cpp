// SPDX-License-Identifier: Apache-2.0
#include "host/line_log.hpp"

#include <gmock/gmock.h>
#include <string>
#include <vector>

#include "ipc/text.hpp"

namespace driftd::host {
namespace {

TEST(LineLog, AFloodIsCountedAndDropped) {
  std::vector<std::string> lines;
  const ipc::Scrubber none;
  LineLog log([&](std::string line) { lines.push_back(std::move(line)); }, none);
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
  const ipc::Scrubber none;
  LineLog log([&](std::string line) { lines.push_back(std::move(line)); }, none);
  const auto start = std::chrono::steady_clock::time_point(std::chrono::hours(1));
  for (int i = 0; i < 1000; ++i) log.feed(std::string(10'000, 'x'), start);
  log.finish(start);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0], std::string(1024, 'x') + " (9998976 bytes cut)");
}

TEST(LineLog, ASecretAcrossTheCutOfALineLeavesNothing) {
  const ipc::Scrubber scrubber(std::map<std::string, std::string>{{"t1", "canary-of-the-password"}});
  for (std::size_t before = 995; before < 1030; ++before) {
    std::vector<std::string> lines;
    LineLog log([&](std::string line) { lines.push_back(std::move(line)); }, scrubber);
    log.feed(std::string(before, 'x') + "canary-of-", {});
    log.feed("the-password" + std::string(9000, 'y') + "\n", {});
    ASSERT_EQ(lines.size(), 1u);
    EXPECT_EQ(lines[0].find("can"), std::string::npos) << before;
  }
}

}  // namespace
}  // namespace driftd::host
