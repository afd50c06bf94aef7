// SPDX-License-Identifier: Apache-2.0
#include "kafka/accepted.hpp"

namespace driftd::kafka {
namespace {

constexpr std::int64_t kLookAgain = 1000;  // ms

/// The order of a list in a configuration does not count.
bool is_unordered(const std::string&) { return true; }

}  // namespace

sdk::Applied answer_accepted(common::AppliedRequests& keys, const sdk::Apply& request, sdk::Applied done,
                             const std::function<bool()>& shown) {
  done.changed = true;
  sdk::Applied waiting = done;
  waiting.outcome = DRIFTD_APPLY_REQUEUE_AFTER;
  waiting.requeue_after_ms = kLookAgain;
  waiting.text = "the controller has accepted the values; the brokers do not show them yet";
  keys.remember(request, waiting);
  if (!shown()) return waiting;
  keys.remember(request, done);
  return done;
}

std::optional<sdk::Applied> answer_repeated(common::AppliedRequests& keys, const sdk::Apply& request,
                                            const sdk::Record& now) {
  auto before = keys.find(request);
  if (!before || before->outcome == DRIFTD_APPLY_SUCCESS) return before;  // somebody may have set the old value since
  auto there = common::compare_judged(now, request, &is_unordered);
  if (!there) return before;
  keys.remember(request, *there);
  return there;
}

}  // namespace driftd::kafka
