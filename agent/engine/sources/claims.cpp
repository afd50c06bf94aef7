// SPDX-License-Identifier: Apache-2.0
#include "engine/sources/claims.hpp"

namespace driftd::engine {
namespace {

constexpr std::size_t kMaxClaimants = 16;

/// Returns the source of a rendered registrar. A backend's name has no `/`.
std::string source_name(const std::string& rendered) { return rendered.substr(0, rendered.find('/')); }

}  // namespace

std::string render(const core::Registrar& who) {
  return who.name_space.empty() ? who.source : who.source + "/" + who.name_space;
}

void Claims::load(const core::StoredResource& stored) {
  core::ClaimState known = core::claim_state(stored);
  accepted_ = {known.accepted.begin(), known.accepted.end()};
  claimants_.insert(known.registrars.begin(), known.registrars.end());
  claimants_.insert(known.accepted.begin(), known.accepted.end());
}

void Claims::apply_decision(const core::StoredResource& next) {
  const auto accepted = core::claim_state(next).accepted;
  accepted_.clear();
  // Who has ended its claim meanwhile is not trusted, although it was accepted.
  for (const auto& one : accepted) {
    if (claimants_.contains(one)) accepted_.insert(one);
  }
}

bool Claims::add(const core::Registrar& who) {
  if (claimants_.size() >= kMaxClaimants || !claimants_.insert(render(who)).second) return false;
  settled_ = false;
  return true;
}

bool Claims::drop_unlisted(const std::string& source, const std::set<core::Registrar>& named) {
  std::set<std::string> stay;
  for (const auto& who : named) stay.insert(render(who));
  const auto over = [&](const std::string& one) { return source_name(one) == source && !stay.contains(one); };
  std::erase_if(accepted_, over);
  if (std::erase_if(claimants_, over) == 0) return false;
  settled_ = false;
  return true;
}

std::set<std::string> Claims::sources() const {
  std::set<std::string> out;
  for (const auto& one : claimants_) out.insert(source_name(one));
  return out;
}

}  // namespace driftd::engine
