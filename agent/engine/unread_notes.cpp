// SPDX-License-Identifier: Apache-2.0
#include "engine/unread_notes.hpp"

namespace driftd::engine {
namespace {

constexpr std::size_t kMaxUnreadPaths = 10'000;  // of one backend

}  // namespace

void UnreadNotes::keep(const core::StoredResource& next, const core::Observation* seen) {
  if (seen == nullptr && next.observed) return;  // a decision: what could be read is as before
  if (const auto known = unread_.find(next.id); known != unread_.end()) {
    paths_ -= known->second.size();
    unread_.erase(known);
  }
  if (seen == nullptr || seen->unread.empty() || paths_ + seen->unread.size() > kMaxUnreadPaths) return;
  paths_ += seen->unread.size();
  unread_[next.id] = seen->unread;
}

UnreadNotes::Paths UnreadNotes::of(const core::ResourceId& id, const Index::Entry* entry) const {
  if (const auto known = unread_.find(id); known != unread_.end()) return {known->second, {}};
  if (entry == nullptr || !entry->present) return {};
  if (entry->asked == 0) return {{}, "it was not read since the agent started"};
  if (entry->unknown) return {{}, "part of it cannot be read; `driftd backends` shows why"};
  return {};
}

}  // namespace driftd::engine
