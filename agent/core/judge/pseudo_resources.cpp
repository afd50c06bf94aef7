// SPDX-License-Identifier: Apache-2.0
// Judges the pseudo-resources `backend/<name>` (system identity), `scope/<kind>` (many resources missing at once) and
// `claim/<backend>` (registrars that the configuration does not name). Their drifts are always manual, and are decided
// before anything that depends on them is judged.
#include <algorithm>

#include "base/digest.hpp"
#include "core/judge/stages.hpp"

namespace driftd::core {
namespace {

constexpr std::string_view kSystemIdentity = "system_identity";
constexpr std::string_view kGone = "gone";
constexpr std::string_view kClaimedBy = "claimed_by";
// limits for the names of a mass deletion, which may have a million
constexpr std::size_t kMaxNames = 1'000, kMaxNameBytes = 64u << 10;
constexpr std::size_t kMaxPieceBytes = 1u << 20;  // of names that are hashed at once

Value object_of(std::string_view member, Value value) {
  Value::Object out;
  out.emplace(std::string(member), std::move(value));
  return out;
}

/// Returns a member of the stored baseline as JSON text. Empty if there is none.
std::optional<std::string> baseline_member(const StoredResource& stored, std::string_view member) {
  if (!stored.baseline) return std::nullopt;
  const Result<Value> body = parse(*stored.baseline);
  const Value* value = body ? body->find(member) : nullptr;
  return value ? std::optional<std::string>(render(*value)) : std::nullopt;
}

std::vector<std::string> texts_of(const std::optional<std::string>& body, std::string_view member) {
  std::vector<std::string> out;
  const Result<Value> parsed = parse(body.value_or("{}"));
  const Value* list = parsed ? parsed->find(member) : nullptr;
  if (list == nullptr || list->array() == nullptr) return out;
  for (const auto& text : *list->array()) {
    if (text.string() != nullptr) out.push_back(*text.string());
  }
  return out;
}

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

Value list_of(const std::vector<std::string>& texts) { return Value(Value::Array(texts.begin(), texts.end())); }

Judgement judge_member(const std::string& backend_uid, const StoredResource& stored, ChangeClass cls,
                       std::optional<Change> change, Nanos now_ns, Judgement out, bool rebased = false) {
  ChangeSet change_set;
  change_set.rebased = rebased;
  if (change) {
    DriftGroup group;
    group.changes.push_back(std::move(*change));
    change_set.groups.emplace(GroupKey{cls, Against::baseline, Action::manual}, std::move(group));
  }
  reconcile({backend_uid, nullptr, now_ns, {}}, stored, std::move(change_set), out);
  return out;
}

}  // namespace

Judgement judge_identity(const std::string& backend_uid, const StoredResource& stored, const std::string& accepted,
                         const std::string& identity, Nanos now_ns) {
  if (identity.empty()) {
    Judgement out = expire_decisions(stored, now_ns);
    out.unknown.push_back({std::string(kSystemIdentity), "the system did not report its identity"});
    for (auto& drift : out.next.open) {
      if (!drift.stale_since_ns) drift.stale_since_ns = now_ns;
    }
    return out;
  }
  Judgement out;
  out.next = stored;
  out.next.observed = render(object_of(kSystemIdentity, Value(identity)));
  out.next.observed_ns = now_ns;
  auto known = baseline_member(stored, kSystemIdentity);
  const std::string now = render(Value(identity));
  const bool rebased = known && accepted.empty();  // another provider, whose identities have another form
  if (!known || rebased) {
    const std::string& first = accepted.empty() ? identity : accepted;
    known = render(Value(first));
    out.next.baseline = render(object_of(kSystemIdentity, Value(first)));
  }
  std::optional<Change> change;
  if (*known != now) change = Change{std::string(kSystemIdentity), ChangeClass::endpoint, *known, now, false};
  return judge_member(backend_uid, stored, ChangeClass::endpoint, std::move(change), now_ns, std::move(out), rebased);
}

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

ClaimState claim_state(const StoredResource& stored) {
  return {texts_of(stored.observed, kClaimedBy), texts_of(stored.baseline, kClaimedBy)};
}

Judgement judge_claims(const std::string& backend_uid, const StoredResource& stored,
                       std::vector<std::string> registrars, Nanos now_ns) {
  Judgement out;
  out.next = stored;
  out.next.observed_ns = now_ns;
  std::sort(registrars.begin(), registrars.end());
  std::vector<std::string> accepted = claim_state(stored).accepted;
  std::erase_if(accepted,
                [&](const auto& one) { return !std::binary_search(registrars.begin(), registrars.end(), one); });
  out.next.observed = registrars.empty() ? "{}" : render(object_of(kClaimedBy, list_of(registrars)));
  out.next.baseline = accepted.empty() ? "{}" : render(object_of(kClaimedBy, list_of(accepted)));
  std::optional<Change> change;
  if (registrars != accepted) {
    const auto before = accepted.empty() ? std::nullopt : std::optional(render(list_of(accepted)));
    change = Change{std::string(kClaimedBy), ChangeClass::config, before, render(list_of(registrars)), false};
  }
  const bool rebased = stored.baseline.has_value() && out.next.baseline != stored.baseline;
  return judge_member(backend_uid, stored, ChangeClass::config, std::move(change), now_ns, std::move(out), rebased);
}

}  // namespace driftd::core
