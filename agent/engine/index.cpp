// SPDX-License-Identifier: Apache-2.0
#include "engine/index.hpp"

#include <algorithm>
#include <numeric>

namespace driftd::engine {

namespace {

bool is_absent(const Index::Entry& entry) { return !entry.present && !entry.open; }

}  // namespace

std::uint16_t Index::kind_number(const std::string& kind) {
  const auto found = std::find(kinds_.begin(), kinds_.end(), kind);
  if (found == kinds_.end()) {
    kinds_.push_back(kind);
    tallies_.emplace_back();
    versioned_.push_back(false);
    return static_cast<std::uint16_t>(kinds_.size() - 1);
  }
  return static_cast<std::uint16_t>(found - kinds_.begin());
}

void Index::tally(const Entry& entry, int sign) {
  tallies_[entry.kind].present += entry.present ? sign : 0;
  tallies_[entry.kind].open += entry.open ? sign : 0;
  tallies_[entry.kind].absent += is_absent(entry) ? sign : 0;
}

void Index::set_versioned(const std::string& kind, bool versioned) { versioned_[kind_number(kind)] = versioned; }

const Index::Entry& Index::put(const core::ResourceId& id, Entry entry) {
  entry.kind = kind_number(id.kind);
  const auto [at, fresh] = entries_.insert(key(id));
  if (!fresh) tally(*at, -1);
  *at = entry;
  tally(entry, 1);
  return *at;
}

Index::Entry* Index::find(const core::ResourceId& id) { return entries_.find(key(id)); }

void Index::forget(const Digest& resource, const Entry& entry) {
  tally(entry, -1);
  forgotten_asked_ = std::max<std::uint64_t>(forgotten_asked_, entry.asked);
  versions_.erase(resource);
  entries_.erase(resource);
}

void Index::erase(const core::ResourceId& id) {
  if (const Entry* known = find(id)) forget(key(id), Entry(*known));
}

template <class Which>
void Index::erase_each(Which which) {
  std::vector<std::pair<Digest, Entry>> gone;
  entries_.for_each([&](const Digest& resource, const Entry& entry) {
    if (which(entry)) gone.emplace_back(resource, entry);
  });
  for (const auto& [resource, entry] : gone) forget(resource, entry);
}

void Index::erase_absent() {
  erase_each([](const Entry& entry) { return is_absent(entry); });
}

void Index::erase_kind(const std::string& kind) {
  const auto number = kind_number(kind);
  erase_each([number](const Entry& entry) { return entry.kind == number; });
}

void Index::add(const Entry& entry, std::uint32_t run, Count& to) {
  const bool unseen = entry.run != run;
  to.present += entry.present ? 1 : 0;
  to.missing += entry.present && unseen ? 1 : 0;
  to.open_unseen += entry.open && unseen && !entry.attention ? 1 : 0;
}

Index::Count Index::count(const std::string& kind, std::uint32_t run) const {
  Count out;
  const auto known = std::find(kinds_.begin(), kinds_.end(), kind);
  if (known == kinds_.end()) return out;
  const auto number = static_cast<std::uint16_t>(known - kinds_.begin());
  entries_.for_each([&](const Digest&, const Entry& entry) {
    if (entry.kind == number) add(entry, run, out);
  });
  return out;
}

std::map<std::string, Index::Count> Index::counts(std::uint32_t run) const {
  std::vector<Count> all(kinds_.size());
  entries_.for_each([&](const Digest&, const Entry& entry) { add(entry, run, all[entry.kind]); });
  std::map<std::string, Count> out;
  for (std::size_t i = 0; i < all.size(); ++i) out[kinds_[i]] = all[i];
  return out;
}

std::int64_t Index::present(const std::string& kind) const {
  const auto known = std::find(kinds_.begin(), kinds_.end(), kind);
  return known == kinds_.end() ? 0 : tallies_[static_cast<std::size_t>(known - kinds_.begin())].present;
}

std::int64_t Index::present() const {
  return std::accumulate(tallies_.begin(), tallies_.end(), std::int64_t{0},
                         [](auto sum, const Tally& t) { return sum + t.present; });
}

std::int64_t Index::absent() const {
  return std::accumulate(tallies_.begin(), tallies_.end(), std::int64_t{0},
                         [](auto sum, const Tally& t) { return sum + t.absent; });
}

std::int64_t Index::open() const {
  return std::accumulate(tallies_.begin(), tallies_.end(), std::int64_t{0},
                         [](auto sum, const Tally& t) { return sum + t.open; });
}

}  // namespace driftd::engine
