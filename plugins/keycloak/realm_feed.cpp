// SPDX-License-Identifier: Apache-2.0
#include "keycloak/realm_feed.hpp"

#include <algorithm>
#include <set>

namespace driftd::keycloak {
namespace {

constexpr std::int64_t kSettleMs = 3'000;   // how long the server's caches may show what was before
constexpr std::int64_t kRecentMs = 10'000;  // events before a full list that are this new are treated the same

constexpr std::int64_t kClockNoiseMs = 3'000;   // what tokens say of the time is a second or two off
constexpr std::int64_t kMaxCoveredMs = 10'000;  // nodes of a cluster differ by this at most

}  // namespace

std::vector<AdminEvent> RealmFeed::fresh(const std::vector<AdminEvent>& events) const {
  std::vector<AdminEvent> out;
  for (const auto& event : events) {
    if (!seen_.contains(event.key())) out.push_back(event);
  }
  return out;
}

bool RealmFeed::vanished(const std::vector<AdminEvent>& events, std::int64_t now_ms) const {
  std::set<std::string> here;
  for (const auto& event : events) here.insert(event.key());
  return std::any_of(seen_.begin(), seen_.end(), [&](const auto& seen) {
    const bool may_be_expired = expiration_.count() > 0 && now_ms - seen.second >= expiration_.count();
    return !may_be_expired && !here.contains(seen.first);
  });
}

bool RealmFeed::expired(std::int64_t now_ms) const {
  return expiration_.count() > 0 && now_ms - polled_ms_ > expiration_.count();
}

std::chrono::milliseconds RealmFeed::stepped_back(std::int64_t now_ms) const {
  const std::int64_t by = polled_ms_ - now_ms;
  const std::int64_t covered = std::clamp<std::int64_t>(overlap_.count(), kClockNoiseMs, kMaxCoveredMs);
  return std::chrono::milliseconds(by > covered ? by : 0);
}

std::set<Touch> RealmFeed::due(std::int64_t now_ms) const {
  std::set<Touch> out;
  for (const auto& [touch, when] : unsettled_) {
    if (when <= now_ms) out.insert(touch);
  }
  return out;
}

void RealmFeed::settle(std::int64_t now_ms) {
  std::erase_if(unsettled_, [&](const auto& each) { return each.second <= now_ms; });
}

void RealmFeed::commit(const std::vector<AdminEvent>& events, std::int64_t now_ms, bool reconciled) {
  for (const auto& event : fresh(events)) {
    const auto touched = touches_of(event);
    if (!reconciled && now_ms - event.time_ms > kRecentMs) continue;
    for (const auto& touch : touched) unsettled_[touch] = now_ms + kSettleMs;
  }
  for (const auto& event : events) {
    last_ms_ = std::max(last_ms_, event.time_ms);
    seen_[event.key()] = event.time_ms;
    if (reconciled && !touches_of(event).empty()) reconciled_ms_ = std::max(reconciled_ms_, event.time_ms);
  }
  polled_ms_ = std::max(polled_ms_, now_ms);
  // The next question does not return these.
  std::erase_if(seen_, [&](const auto& seen) { return seen.second < from_ms(); });
}

}  // namespace driftd::keycloak
