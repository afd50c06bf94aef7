// SPDX-License-Identifier: Apache-2.0
// Mass deletions (semantics 4): when missing resources are asked about together, and the pseudo-resource `scope/<kind>`
// that asks. engine/cycle_mass_deletion holds them until a person decides, engine/approved_deletions keeps what was
// approved, and engine/engine_discovery does the same for discovered backends.
#include <algorithm>

#include "base/digest.hpp"
#include "core/judge/pseudo_resources.hpp"

namespace driftd::core {
namespace {

constexpr std::string_view kGone = "gone";
// limits for the names of a mass deletion, which may have a million
constexpr std::size_t kMaxNames = 1'000, kMaxNameBytes = 64u << 10;
constexpr std::size_t kMaxPieceBytes = 1u << 20;  // of names that are hashed at once

/// Returns the SHA-256 over all length-prefixed names, computed in pieces. Different lists have different digests: the
/// leading text can never be the digest of a piece.
std::string names_digest(const std::vector<std::string>& sorted) {
  std::string piece = "driftd names 1\n";
  for (const auto& name : sorted) {
    piece += std::to_string(name.size()) + ':' + name;
    if (piece.size() >= kMaxPieceBytes) piece = sha256(piece);
  }
  return to_hex(sha256(piece));
}

/// Returns how many of these names are shown.
std::size_t count_shown(const std::vector<std::string>& sorted) {
  std::size_t count = 0, bytes = 0;
  while (count < sorted.size() && count < kMaxNames && bytes + sorted[count].size() <= kMaxNameBytes) {
    bytes += sorted[count++].size();
  }
  return count;
}

}  // namespace

bool mass_deletion(std::size_t known, std::size_t missing) { return missing > 10 && missing * 5 > known; }

Value gone_value(std::vector<std::string> names, GoneNames shown) {
  std::sort(names.begin(), names.end());
  Value::Object out;
  out.emplace("count", Value::Number{std::to_string(names.size())});
  const std::size_t count = shown == GoneNames::all ? names.size() : count_shown(names);
  if (count < names.size()) {
    out.emplace("sha256", names_digest(names));
    names.resize(count);
  }
  out.emplace("names", list_of(names));
  return Value(std::move(out));
}

Judgement judge_scope(const std::string& backend_uid, const StoredResource& stored, std::vector<std::string> missing,
                      Nanos now_ns, GoneNames shown) {
  Judgement out;
  out.next = stored;
  out.next.observed_ns = now_ns;
  if (missing.empty()) {  // they are back, or their deletion is accepted; the next mass deletion is a new drift
    out.next.baseline = out.next.observed = "{}";
    return judge_member(backend_uid, stored, ChangeClass::config, std::nullopt, now_ns, std::move(out));
  }
  Value value = gone_value(std::move(missing), shown);
  const std::string now = render(value);
  out.next.observed = render(object_of(kGone, std::move(value)));
  if (!stored.baseline) out.next.baseline = "{}";
  const auto accepted = baseline_member(stored, kGone);
  std::optional<Change> change;
  if (accepted != now) change = Change{std::string(kGone), ChangeClass::config, accepted, now, false};
  return judge_member(backend_uid, stored, ChangeClass::config, std::move(change), now_ns, std::move(out));
}

}  // namespace driftd::core
