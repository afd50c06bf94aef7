// SPDX-License-Identifier: Apache-2.0
#include "delivery/endpoint_health.hpp"

#include <utility>

namespace driftd::delivery {
namespace {

constexpr int kFailuresInRow = 5;        // failures in a row that may open the circuit
constexpr std::size_t kFailingKeys = 3;  // if this many keys fail, the endpoint is to blame and not an event
constexpr int kProofs = 3;               // fewer do not prove anything: a busy endpoint refuses events at random
constexpr std::size_t kSuspects = 10'000;

}  // namespace

void EndpointHealth::trip(Time now, std::int64_t retry_after_ms) {
  circuit_.trip(now, retry_after_ms);
  failures_in_row_ = 0;
}

EndpointHealth::Blame EndpointHealth::refused(const std::string& key, Time now, std::int64_t retry_after_ms) {
  if (suspects_.size() >= kSuspects && suspects_.count(key) == 0) suspects_.erase(suspects_.begin());
  Suspect& suspect = suspects_[key];
  const bool others_succeeded = suspect.failures > 0 && successes_ > suspect.successes;
  suspect.successes = successes_;
  ++suspect.failures;
  if (others_succeeded) {
    ++suspect.proofs;
  } else {
    failing_.insert(key);
  }
  if (state(now) != Circuit::State::closed || failing_.size() >= kFailingKeys) {
    trip(now, retry_after_ms);
    return Blame::endpoint;
  }
  if (suspect.proofs >= kProofs) return Blame::event;
  if (!others_succeeded && retry_after_ms == 0) held_.insert(key);
  return Blame::nobody;
}

bool EndpointHealth::failed(const std::string& key, Time now) {
  failing_.insert(key);
  ++failures_in_row_;
  const bool spread = failures_in_row_ >= kFailuresInRow && failing_.size() >= kFailingKeys;
  if (!spread && state(now) != Circuit::State::half_open) return false;
  trip(now, 0);
  return true;
}

std::set<std::string> EndpointHealth::alive(const std::string& key, Time now) {
  suspects_.erase(key);
  if (state(now) == Circuit::State::open) return {};
  circuit_.close();
  ++successes_;
  failures_in_row_ = 0;
  failing_.clear();
  held_.erase(key);
  return std::exchange(held_, {});
}

int EndpointHealth::failures(const std::string& key) const {
  const auto found = suspects_.find(key);
  return found == suspects_.end() ? 0 : found->second.failures;
}

}  // namespace driftd::delivery
