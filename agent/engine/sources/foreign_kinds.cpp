// SPDX-License-Identifier: Apache-2.0
#include "engine/sources/foreign_kinds.hpp"

#include <algorithm>

#include "core/scope.hpp"

namespace driftd::engine {
namespace {

constexpr std::size_t kMaxKinds = 10'000;
constexpr std::size_t kMaxLines = 1'000;
constexpr std::size_t kMaxName = 512;    // bytes; no valid name is longer, and each one is kept
constexpr std::size_t kMaxReasons = 20;  // of the line for all other kinds

core::Coverage coverage_line(const ForeignKinds::BackendKind& of, const KindReport& kind) {
  core::Coverage line;
  line.kind = declared_line(of.first, of.second);
  line.established = true;
  line.complete = kind.complete && kind.left_out == 0;
  line.resources = static_cast<std::int64_t>(kind.received);
  line.reasons = kind.reasons;
  if (!line.complete && line.reasons.empty()) line.reasons.emplace_back(kIncompleteReason);
  return line;
}

}  // namespace

void add_once(std::vector<std::string>& reasons, const std::string& reason, std::size_t max) {
  if (reasons.size() < max && std::find(reasons.begin(), reasons.end(), reason) == reasons.end())
    reasons.push_back(reason);
}

std::string declared_line(const std::string& backend, const std::string& kind) {
  return "declared:" + backend + "/" + kind;
}
std::string place_line(const std::string& place) { return place + "/*"; }

const RegistrationLines::Line* RegistrationLines::find(const std::string& name) const {
  const auto found = lines.find(name);
  return found == lines.end() ? nullptr : &found->second;
}

KindReport* ForeignKinds::at(const std::string& backend, const std::string& kind, bool registered) {
  const BackendKind of{backend, kind};
  for (Kinds* kinds : {&registered_, &others_}) {  // the backend may have been registered during the run
    if (const auto known = kinds->find(of); known != kinds->end()) return &known->second;
  }
  Kinds& kinds = registered ? registered_ : others_;
  if (kinds.size() < kMaxKinds && backend.size() <= kMaxName && kind.size() <= kMaxName) return &kinds[of];
  ++left_out_;
  return nullptr;
}

std::set<ForeignKinds::BackendKind> ForeignKinds::all() const {
  std::set<BackendKind> out;
  for (const Kinds* kinds : {&registered_, &others_}) {
    for (const auto& [of, kind] : *kinds) out.insert(of);
  }
  return out;
}

void ForeignKinds::add_lines(std::vector<core::Coverage>& coverage) const {
  std::size_t lines = 0;
  std::vector<Kinds::const_iterator> more;
  for (const Kinds* kinds : {&registered_, &others_}) {
    for (auto at = kinds->begin(); at != kinds->end(); ++at) {
      if (++lines <= kMaxLines) {
        coverage.push_back(coverage_line(at->first, at->second));
      } else {
        more.push_back(at);
      }
    }
  }
  if (!more.empty() || left_out_ > 0) coverage.push_back(rest(std::move(more)));
}

core::Coverage ForeignKinds::rest(std::vector<Kinds::const_iterator> kinds) const {
  core::Coverage out;
  out.kind = declared_line("*", "*");
  out.established = true;
  out.complete = left_out_ == 0;
  if (left_out_ > 0) {
    out.reasons.push_back("budget: " + std::to_string(left_out_) +
                          " of what this source says of other backends is left out: of " + std::to_string(kMaxKinds) +
                          " kinds of them something is taken; nothing is withdrawn for it");
  }
  std::uint64_t amiss = 0;
  for (const auto& at : kinds) {
    const core::Coverage one = coverage_line(at->first, at->second);
    out.resources += one.resources;
    out.complete = out.complete && (one.complete || core::coverage_state(one) == "unsupported");
    for (const auto& reason : one.reasons) {
      const bool room = out.reasons.size() < kMaxReasons && reason != kIncompleteReason;  // leaves room for specific
                                                                                          // reasons
      if (room) out.reasons.push_back(at->first.first + "/" + at->first.second + ": " + reason);
      amiss += room ? 0 : 1;
    }
  }
  if (amiss > 0) out.reasons.push_back(std::to_string(amiss) + " more kinds are not listed whole, or say why not");
  return out;
}

RegistrationLines ForeignKinds::registrations() const {
  RegistrationLines out;
  out.left_out = left_out_ > 0;
  for (const Kinds* kinds : {&registered_, &others_}) {
    for (const auto& [of, kind] : *kinds) {
      if (of.second != core::kRegistration) continue;
      core::Coverage line = coverage_line(of, kind);
      out.lines[line.kind] = {line.complete, line.reasons.empty() ? std::string() : std::move(line.reasons.front())};
    }
  }
  return out;
}

}  // namespace driftd::engine
