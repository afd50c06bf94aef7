// SPDX-License-Identifier: Apache-2.0
#include "engine/index.hpp"

#include <algorithm>

namespace driftd::engine {

std::uint16_t Index::kind_number(const std::string& kind) {
  const auto found = std::find(kinds_.begin(), kinds_.end(), kind);
  if (found == kinds_.end()) {
    kinds_.push_back(kind);
    return static_cast<std::uint16_t>(kinds_.size() - 1);
  }
  return static_cast<std::uint16_t>(found - kinds_.begin());
}

void Index::put(const core::ResourceId& id, Entry entry) {
  entry.kind = kind_number(id.kind);
  entries_[key(id)] = entry;
}

Index::Entry* Index::find(const core::ResourceId& id) {
  const auto found = entries_.find(key(id));
  return found == entries_.end() ? nullptr : &found->second;
}

Index::Count Index::count(const std::string& kind, std::uint32_t run) {
  const auto number = kind_number(kind);
  Count out;
  for (const auto& [id, entry] : entries_) {
    if (entry.kind != number) continue;
    const bool unseen = entry.run != run;
    out.present += entry.present ? 1 : 0;
    out.missing += entry.present && unseen ? 1 : 0;
    out.open_unseen += entry.open && unseen && !entry.attention ? 1 : 0;
  }
  return out;
}

std::int64_t Index::present() const {
  return std::count_if(entries_.begin(), entries_.end(), [](const auto& e) { return e.second.present; });
}

std::int64_t Index::open() const {
  return std::count_if(entries_.begin(), entries_.end(), [](const auto& e) { return e.second.open; });
}

}  // namespace driftd::engine
