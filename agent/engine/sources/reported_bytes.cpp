// SPDX-License-Identifier: Apache-2.0
#include "engine/sources/reported_bytes.hpp"

namespace driftd::engine {
namespace {

constexpr std::size_t kMostOfPlace = 8u << 20, kMostOfSource = 64u << 20;

std::string words_of(std::size_t most, const char* whose) {
  return "budget: what is said of registered backends has room for " + std::to_string(most >> 20) + " MiB of one " +
         whose + "; the last word that there was room for stands";
}

}  // namespace

std::size_t SaidBytes::of(const core::Speaker& who) const {
  const auto found = places_.find(who);
  return found == places_.end() ? 0 : found->second;
}

std::string SaidBytes::take(const std::string& backend, const core::Speaker& who, std::size_t bytes) {
  const auto known = said_.find(backend);
  const bool own = known != said_.end() && known->second.who.source == who.source;
  const std::size_t freed = own ? known->second.bytes : 0, freed_here = own && known->second.who == who ? freed : 0;
  const auto all = sources_.find(who.source);
  if (all != sources_.end() && all->second - freed + bytes > kMostOfSource) return words_of(kMostOfSource, "source");
  if (!who.name_space.empty() && of(who) - freed_here + bytes > kMostOfPlace)
    return words_of(kMostOfPlace, "namespace");
  forget(backend);
  said_[backend] = {who, bytes};
  places_[who] += bytes;
  sources_[who.source] += bytes;
  return {};
}

void SaidBytes::forget(const std::string& backend) {
  const auto found = said_.extract(backend);
  if (!found) return;
  const Said& said = found.mapped();
  if ((places_[said.who] -= said.bytes) == 0) places_.erase(said.who);
  if ((sources_[said.who.source] -= said.bytes) == 0) sources_.erase(said.who.source);
}

}  // namespace driftd::engine
