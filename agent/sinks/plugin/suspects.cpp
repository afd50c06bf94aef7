// SPDX-License-Identifier: Apache-2.0
#include "sinks/plugin/suspects.hpp"

namespace driftd::sinks {
namespace {

/// With the loss of its first batch these are four, one less than what parks a worker (host/crash_history.hpp).
constexpr int kLossesAlone = 3;
constexpr int kProofs = kLossesAlone - 1;
constexpr std::size_t kMaxSuspects = 10'000;

}  // namespace

bool Suspects::worker_lost(const std::string& id, bool alone) {
  if (by_id_.size() >= kMaxSuspects && !by_id_.contains(id)) by_id_.erase(by_id_.begin());
  Suspect& suspect = by_id_[id];
  if (alone && suspect.lost_alone > 0 && successes_ > suspect.successes) ++suspect.proofs;
  if (alone) ++suspect.lost_alone;
  suspect.successes = successes_;
  if (suspect.lost_alone < kLossesAlone || suspect.proofs < kProofs) return false;
  by_id_.erase(id);
  return true;
}

}  // namespace driftd::sinks
