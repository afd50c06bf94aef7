// SPDX-License-Identifier: Apache-2.0
#include "delivery/decision_links.hpp"

#include <sys/random.h>
#include <algorithm>
#include <array>

#include "base/digest.hpp"
#include "core/link_token.hpp"

namespace driftd::delivery {
namespace {

constexpr std::size_t kMaxRemembered = 64;  // messages

Result<std::string> new_token() {
  std::array<char, core::kLinkTokenBytes> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    return fail(Code::unavailable, "the system gives no random bytes for the links of a notification");
  }
  return to_hex(std::string_view(bytes.data(), bytes.size()));
}

}  // namespace

DecisionLinks::DecisionLinks(core::LinkStore& store, const Clock& clock, core::LinkSettings settings)
    : store_(store),
      clock_(clock),
      settings_(std::move(settings)) {}

Task<Result<DecisionLinks::Links>> DecisionLinks::make(std::string event_id, std::string sink,
                                                       std::vector<Shown> drifts) {
  const std::string key = event_id + " " + sink;
  if (const auto known = made_.find(key); known != made_.end()) co_return known->second;
  Links out(drifts.size());
  std::vector<core::DecisionLink> stored;
  const Nanos now = clock_.wall();
  const Nanos until = now + std::chrono::nanoseconds(settings_.expire_after).count();
  for (std::size_t i = 0; i < drifts.size(); ++i) {
    for (const auto& action : settings_.actions) {
      if (action == "approve" && !drifts[i].approvable) continue;
      DRIFTD_CO_TRY(const std::string token, new_token());
      stored.push_back({core::link_hash(token), event_id, sink, drifts[i].id, drifts[i].digest, action, now, until});
      out[i].push_back({action, settings_.base_url + "/l/" + token});
    }
  }
  DRIFTD_CO_CHECK(co_await store_.add_links(std::move(stored)));
  remember(key, out);
  co_return out;
}

void DecisionLinks::remember(const std::string& key, const Links& links) {
  made_[key] = links;
  order_.push_back(key);
  if (order_.size() <= kMaxRemembered) return;
  made_.erase(order_.front());
  order_.pop_front();
}

}  // namespace driftd::delivery
