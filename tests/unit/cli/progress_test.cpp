// SPDX-License-Identifier: Apache-2.0
// What people have already done about a drift stands in its line: who looks after it, and how many have approved it.
#include <gmock/gmock.h>

#include "base/clock.hpp"
#include "command_result.hpp"
#include "unit/admin/fake_agent.hpp"

namespace driftd::cli {
namespace {

using test::FakeAgent;
using testing::HasSubstr;
using testing::Not;

constexpr Nanos kHour = 3'600'000'000'000;

std::string listed(const core::Drift& drift) {
  FakeAgent agent;
  core::DriftRow row;
  row.backend = "cache";
  row.drift = drift;
  agent.reader()->open = {row};
  return driftd({"--socket", agent.socket(), "drifts"}).out;
}

TEST(Progress, ADriftNamesWhoLooksAfterItAndUntilWhen) {
  core::Drift drift = test::pending_drift("d-1");
  drift.claimed_by = "kim";
  drift.claim_until_ns = 4'000'000'000'000'000'000;
  EXPECT_THAT(listed(drift), HasSubstr("credential, pending, claimed by kim until 2096-10-02 07:06:40, opened"));
  drift.claim_until_ns = 1'000'000'000'000'000'000;
  EXPECT_THAT(listed(drift), HasSubstr("credential, pending, opened")) << "a claim that ran out";
}

TEST(Progress, ADriftThatSeveralMustApproveSaysHowManyDid) {
  const Nanos now = SystemClock().wall();
  core::Drift drift = test::pending_drift("d-1");
  drift.approvals_needed = 2;
  EXPECT_THAT(listed(drift), HasSubstr("credential, pending, approved by 0 of 2, opened"));
  drift.approvals = {{"kim", "", now, now + kHour}, {"sam", "", now - 2 * kHour, now - kHour}};
  EXPECT_THAT(listed(drift), HasSubstr("credential, pending, approved by 1 of 2, opened")) << "one ran out";
  drift.approvals = {{"kim", "", now, {}}};
  drift.claimed_by = "sam";
  drift.claim_until_ns = now + kHour;
  EXPECT_THAT(listed(drift), HasSubstr("pending, approved by 1 of 2, claimed by sam until"));
  drift.status = core::DriftStatus::rejected;
  EXPECT_THAT(listed(drift), Not(HasSubstr("approved by")));
}

}  // namespace
}  // namespace driftd::cli
