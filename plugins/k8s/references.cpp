// SPDX-License-Identifier: Apache-2.0
#include "k8s/references.hpp"

#include <algorithm>

#include "common/utf8_text.hpp"

namespace driftd::k8s {
namespace {

constexpr std::chrono::minutes kMaxAge{1};
constexpr std::size_t kMaxObjectName = 253, kShown = 64;

bool is_label(const std::string& text) {
  const auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  for (const char c : text) {
    if (!plain(c) && c != '-') return false;
  }
  return !text.empty() && plain(text.front()) && plain(text.back());
}

/// Returns a text that a user wrote as a name, shortened to fit into a sentence; it stays valid UTF-8.
std::string shown(const std::string& text) {
  const std::string_view begin = common::utf8_prefix(text, kShown);
  return "'" + std::string(begin) + (begin.size() < text.size() ? "…'" : "'");
}

}  // namespace

bool is_object_name(const std::string& name) {
  if (name.size() > kMaxObjectName) return false;
  for (std::size_t from = 0;;) {
    const auto dot = name.find('.', from);
    if (!is_label(name.substr(from, dot - from))) return false;
    if (dot == name.npos) return true;
    from = dot + 1;
  }
}

std::optional<Absence> References::known(const Ref& ref, const std::string& space) {
  for (const auto* name : {&ref.space, &ref.name}) {
    if (is_object_name(*name)) continue;
    return Absence{DRIFTD_INVALID,
                   "it points to a " + ref.type + " by " + shown(*name) +
                       ", expected a DNS name of at most 253 bytes; it is not asked for",
                   {}};
  }
  if (const auto found = absent_.find(ref); found != absent_.end()) return found->second;
  std::size_t& of_space = asked_[space];
  // Those of the cluster were written by somebody who may do anything there; lists stand in for most of them.
  if (all_ >= kMost || (!space.empty() && of_space >= kMaxOfSpace)) {
    return Absence{DRIFTD_BUDGET,
                   "its " + ref.type + " is not asked for: what backends point to is asked for at most " +
                       std::to_string(kMaxOfSpace) + " times for those of one namespace and " + std::to_string(kMost) +
                       " times in all",
                   {}};
  }
  ++of_space;
  ++all_;
  return std::nullopt;
}

void References::age(Clock::time_point now) {
  if (since_ && now - *since_ < kMaxAge) return;
  *this = {};
  since_ = now;
}

}  // namespace driftd::k8s
