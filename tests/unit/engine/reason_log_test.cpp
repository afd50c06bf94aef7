// SPDX-License-Identifier: Apache-2.0
#include "engine/reason_log.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace driftd::engine {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

class ReasonsInTheLog : public testing::Test {
 protected:
  void now_says(std::vector<std::string> reasons, std::chrono::milliseconds later = std::chrono::milliseconds(500)) {
    core::Coverage line;
    line.kind = "topic";
    line.reasons = std::move(reasons);
    at_ += later;
    log_.log_changes(before_, {line}, at_);
    before_ = {line};
  }
  std::vector<std::string> lines_;

 private:
  ReasonLog log_{[this](bool, std::string line) { lines_.push_back(std::move(line)); }};
  std::vector<core::Coverage> before_;
  RateLimiter::Clock::time_point at_{std::chrono::hours(1)};
};

TEST_F(ReasonsInTheLog, EachIsToldOnceAndItsEndToo) {
  for (int i = 0; i < 5; ++i) now_says({"denied: no right"});
  now_says({});
  EXPECT_THAT(lines_, ElementsAre("topic: denied: no right", "topic is seen whole again"));
}

TEST_F(ReasonsInTheLog, AProviderWithOtherReasonsEachTimeFillsNoDisk) {
  for (int cycle = 0; cycle < 200; ++cycle) {
    std::vector<std::string> reasons;
    for (int i = 0; i < 100; ++i) reasons.push_back(std::to_string(cycle) + "/" + std::to_string(i));
    now_says(std::move(reasons));
  }
  EXPECT_LE(lines_.size(), 60u + 2 * 100) << "100 s, each line with one that counts what was left out";
  EXPECT_THAT(lines_.back(), testing::AnyOf(HasSubstr("/"), HasSubstr("left out")));
  lines_.clear();
  now_says({}, std::chrono::minutes(2));
  ASSERT_THAT(lines_, SizeIs(2));
  EXPECT_THAT(lines_[0], HasSubstr("more lines like these were left out"));
  EXPECT_EQ(lines_[1], "topic is seen whole again");
}

}  // namespace
}  // namespace driftd::engine
