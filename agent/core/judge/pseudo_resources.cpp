// SPDX-License-Identifier: Apache-2.0
// The pseudo-resources `backend/<name>` (system identity) and `claim/<backend>` (registrars that the configuration does
// not name), and what they share with `scope/<kind>` (mass_deletion.cpp).
#include "core/judge/pseudo_resources.hpp"

#include <algorithm>

namespace driftd::core {
namespace {

constexpr std::string_view kSystemIdentity = "system_identity";
constexpr std::string_view kClaimedBy = "claimed_by";

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

}  // namespace

Value object_of(std::string_view member, Value value) {
  Value::Object out;
  out.emplace(std::string(member), std::move(value));
  return out;
}

std::optional<std::string> baseline_member(const StoredResource& stored, std::string_view member) {
  if (!stored.baseline) return std::nullopt;
  const Result<Value> body = parse(*stored.baseline);
  const Value* value = body ? body->find(member) : nullptr;
  return value ? std::optional<std::string>(render(*value)) : std::nullopt;
}

Value list_of(const std::vector<std::string>& texts) { return Value(Value::Array(texts.begin(), texts.end())); }

Judgement judge_member(const std::string& backend_uid, const StoredResource& stored, ChangeClass cls,
                       std::optional<Change> change, Nanos now_ns, Judgement out, bool rebased) {
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
