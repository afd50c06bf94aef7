// SPDX-License-Identifier: Apache-2.0
// What the last reading of each resource could not read. It is not stored, so each process finds it out again.
#include "engine/ledger.hpp"

namespace driftd::engine {
namespace {

constexpr std::size_t kMaxUnreadPaths = 10'000;  // of one backend, for explanations

}  // namespace

void Ledger::keep_unread(const core::StoredResource& next, const core::Observation* seen) {
  if (seen == nullptr && next.observed) return;  // a decision: what could be read is as before
  if (const auto known = unread_.find(next.id); known != unread_.end()) {
    unread_paths_ -= known->second.size();
    unread_.erase(known);
  }
  if (seen == nullptr || seen->unread.empty() || unread_paths_ + seen->unread.size() > kMaxUnreadPaths) return;
  unread_paths_ += seen->unread.size();
  unread_[next.id] = seen->unread;
}

Ledger::UnreadPaths Ledger::unread_of(const core::ResourceId& id) {
  if (const auto known = unread_.find(id); known != unread_.end()) return {known->second, {}};
  const Index::Entry* entry = index_.find(id);
  if (entry == nullptr || !entry->present) return {};
  if (entry->asked == 0) return {{}, "it was not read since the agent started"};
  if (entry->unknown) return {{}, "part of it cannot be read; `driftd backends` shows why"};
  return {};
}

}  // namespace driftd::engine
