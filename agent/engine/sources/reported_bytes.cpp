// SPDX-License-Identifier: Apache-2.0
#include "engine/sources/reported_bytes.hpp"

namespace driftd::engine {
namespace {

constexpr std::size_t kMaxOfPlace = 8u << 20, kMaxOfSource = 64u << 20;

std::string no_room(std::size_t max, const char* whose) {
  return "budget: reports on registered backends may have " + std::to_string(max >> 20) + " MiB of one " + whose +
         "; the last report that fitted stays in force";
}

/// Takes `bytes` from one entry and erases it if nothing is left.
template <class Key>
void subtract(std::map<Key, std::size_t>& totals, const Key& key, std::size_t bytes) {
  const auto found = totals.find(key);
  found->second -= bytes;
  if (found->second == 0) totals.erase(found);
}

}  // namespace

std::size_t ReportedBytes::of(const core::Registrar& who) const {
  const auto found = places_.find(who);
  return found == places_.end() ? 0 : found->second;
}

std::string ReportedBytes::try_add(const std::string& backend, const core::Registrar& who, std::size_t bytes) {
  const auto known = entries_.find(backend);
  const bool own = known != entries_.end() && known->second.who.source == who.source;
  const std::size_t freed = own ? known->second.bytes : 0, freed_here = own && known->second.who == who ? freed : 0;
  const auto all = sources_.find(who.source);
  if (all != sources_.end() && all->second - freed + bytes > kMaxOfSource) return no_room(kMaxOfSource, "source");
  if (!who.name_space.empty() && of(who) - freed_here + bytes > kMaxOfPlace) return no_room(kMaxOfPlace, "namespace");
  forget(backend);
  entries_[backend] = {who, bytes};
  places_[who] += bytes;
  sources_[who.source] += bytes;
  return {};
}

void ReportedBytes::forget(const std::string& backend) {
  const auto found = entries_.extract(backend);
  if (!found) return;
  const Entry& entry = found.mapped();
  subtract(places_, entry.who, entry.bytes);
  subtract(sources_, entry.who.source, entry.bytes);
}

}  // namespace driftd::engine
