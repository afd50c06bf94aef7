// SPDX-License-Identifier: Apache-2.0
#include "check/process_state.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include "check/check.hpp"

namespace driftd::check {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

/// Work that takes so long by a clock of the test's own.
class Slow {
 public:
  explicit Slow(std::chrono::nanoseconds each) : each_(each) {}
  void expect_flat(const std::function<void()>& work = [] {}) {
    check::expect_flat("refresh", 20, 60, [&] { ++calls, now_ += each_, work(); }, {120s, [this] { return now_; }});
  }
  int calls = 0;

 private:
  std::chrono::nanoseconds now_{0};
  const std::chrono::nanoseconds each_;
};

TEST(ExpectFlat, QuickWorkIsDoneAsOftenAsWasAsked) {
  Slow work(1ms);
  work.expect_flat();
  EXPECT_EQ(work.calls, 200);
}

TEST(ExpectFlat, SlowWorkIsJudgedByFewerCalls) {
  Slow work(1500ms);
  work.expect_flat();
  EXPECT_GE(work.calls, 40);
  EXPECT_LE(work.calls, 80);
}

TEST(ExpectFlat, ALeakIsSeenInFewerCallsToo) {
  Slow work(1500ms);
  EXPECT_THROW(work.expect_flat([] { (void)::fcntl(0, F_DUPFD_CLOEXEC, 3); }), RuleBroken);
  ::close_range(3, ~0U, 0);
}

TEST(ExpectFlat, WhatIsTooSlowIsNotJudged) {
  Slow work(25s);
  try {
    work.expect_flat();
    ADD_FAILURE() << "judged";
  } catch (const CheckNotMade& e) {
    EXPECT_THAT(e.what(), HasSubstr("too slow to judge"));
  }
  EXPECT_EQ(work.calls, 1);
}

}  // namespace
}  // namespace driftd::check
