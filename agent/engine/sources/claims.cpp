// SPDX-License-Identifier: Apache-2.0
#include "engine/sources/claims.hpp"

namespace driftd::engine {
namespace {

constexpr std::size_t kMostSpeaking = 16;

/// A backend's name has no `/`.
std::string source_of(const std::string& rendered) { return rendered.substr(0, rendered.find('/')); }

}  // namespace

std::string render(const core::Speaker& who) {
  return who.name_space.empty() ? who.source : who.source + "/" + who.name_space;
}

void Claims::load(const core::StoredResource& stored) {
  core::Claimed known = core::claimed(stored);
  accepted_ = {known.accepted.begin(), known.accepted.end()};
  speaking_.insert(known.speakers.begin(), known.speakers.end());
  speaking_.insert(known.accepted.begin(), known.accepted.end());
}

void Claims::decided(const core::StoredResource& next) {
  const auto accepted = core::claimed(next).accepted;
  accepted_.clear();
  // whoever made no claim any more meanwhile is not believed for having been accepted
  for (const auto& one : accepted) {
    if (speaking_.contains(one)) accepted_.insert(one);
  }
}

bool Claims::add(const core::Speaker& who) {
  if (speaking_.size() >= kMostSpeaking || !speaking_.insert(render(who)).second) return false;
  settled_ = false;
  return true;
}

bool Claims::keep(const std::string& source, const std::set<core::Speaker>& named) {
  std::set<std::string> stay;
  for (const auto& who : named) stay.insert(render(who));
  const auto over = [&](const std::string& one) { return source_of(one) == source && !stay.contains(one); };
  std::erase_if(accepted_, over);
  if (std::erase_if(speaking_, over) == 0) return false;
  settled_ = false;
  return true;
}

std::set<std::string> Claims::sources() const {
  std::set<std::string> out;
  for (const auto& one : speaking_) out.insert(source_of(one));
  return out;
}

}  // namespace driftd::engine
