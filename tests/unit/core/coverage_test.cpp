// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "core/ports/control.hpp"

namespace driftd::core {
namespace {

Coverage coverage(bool established, bool complete, std::int64_t unknown, std::vector<std::string> reasons) {
  Coverage out;
  out.established = established;
  out.complete = complete;
  out.unknown = unknown;
  out.reasons = std::move(reasons);
  return out;
}

TEST(CoverageState, SaysInOneWordHowAKindCanBeJudged) {
  EXPECT_EQ(coverage_state(coverage(true, true, 0, {})), "seen");
  EXPECT_EQ(coverage_state(coverage(true, true, 1, {})), "partial");
  EXPECT_EQ(coverage_state(coverage(true, true, 0, {"denied: verifier"})), "partial") << "the list is whole";
  EXPECT_EQ(coverage_state(coverage(true, false, 0, {"denied: may not list (grant LIST)"})), "denied");
  EXPECT_EQ(coverage_state(coverage(true, false, 0, {"unauthenticated: wrong password"})), "denied");
  EXPECT_EQ(coverage_state(coverage(false, false, 0, {"unsupported: this library cannot"})), "unsupported");
  EXPECT_EQ(coverage_state(coverage(false, false, 0, {"cut", "denied: x"})), "denied")
      << "the word of the first reason that has one";
  EXPECT_EQ(coverage_state(coverage(true, false, 0, {"unavailable: no answer"})), "stale");
  EXPECT_EQ(coverage_state(coverage(false, false, 0, {"unavailable: no answer"})), "unseen");
}

}  // namespace
}  // namespace driftd::core
