// SPDX-License-Identifier: Apache-2.0
#include "engine/reason_log.hpp"

#include <string_view>
#include <unordered_map>

namespace driftd::engine {

void ReasonLog::log_changes(const std::vector<core::Coverage>& before, const std::vector<core::Coverage>& now,
                            RateLimiter::Clock::time_point at) {
  std::unordered_map<std::string_view, const core::Coverage*> former;
  for (const auto& kind : before) former.emplace(kind.kind, &kind);
  for (const auto& kind : now) {
    const auto known = former.find(kind.kind);
    const bool had = known != former.end() && !known->second->reasons.empty();
    if (known != former.end() && known->second->reasons == kind.reasons) continue;
    for (const auto& reason : kind.reasons) line(true, kind.kind + ": " + reason, at);
    if (kind.reasons.empty() && had) line(false, kind.kind + " is seen whole again", at);
  }
}

void ReasonLog::line(bool warning, std::string text, RateLimiter::Clock::time_point at) {
  if (!rate_.try_take(at)) {
    ++suppressed_;
    return;
  }
  if (suppressed_ > 0)
    print_(true, std::to_string(suppressed_) + " more lines like these were left out; `driftd status` has the reasons");
  suppressed_ = 0;
  print_(warning, std::move(text));
}

}  // namespace driftd::engine
