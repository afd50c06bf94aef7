// SPDX-License-Identifier: Apache-2.0
// The life of drifts: which open one goes on, which ends and how, which is new.
#include <algorithm>

#include "base/digest.hpp"
#include "core/judge/diff.hpp"
#include "core/judge/stages.hpp"
#include "core/redact.hpp"

namespace driftd::core {
namespace {

/// One is in clear, the other a digest: an agent that withholds more than its predecessor saw no change.
bool same_in_another_form(const ReconcileInput& input, const std::string& path, const Value& left, const Value& right) {
  const auto digest = as_digest(left) ? as_digest(left) : as_digest(right);
  if (!digest || input.keys == nullptr) return false;
  const Value& clear = as_digest(left) ? right : left;
  const auto sealed =
      sealed_digest(clear, input.id, attribute_path(path), *input.schema, *input.keys, digest->withheld);
  // the memory for it ran out after the comparison that found this: told once more, never hidden
  if (!sealed) return false;
  const auto made = as_digest(*sealed);
  return made->key_id == digest->key_id && made->revision == digest->revision && made->hex == digest->hex;
}

bool same_value(const ReconcileInput& input, const std::string& path, const std::optional<std::string>& a,
                const std::optional<std::string>& b) {
  if (a == b) return true;
  if (!a || !b || !input.schema || path == kIdentityPath) return false;
  const Result<Value> left = parse(*a), right = parse(*b);
  if (!left || !right) return false;
  if (contains_digest(*left) != contains_digest(*right)) return same_in_another_form(input, path, *left, *right);
  const AttributeRule& rule = input.schema->rule(attribute_path(path));
  const Result<std::string> left_norm = normalise(rule, *left), right_norm = normalise(rule, *right);
  return left_norm && right_norm && *left_norm == *right_norm;
}

/// `change` says of its path what the drift already already_reported. Against an expectation both sides count: 3 in the
/// place of 1 is not 3 in the place of 100. A baseline follows by decisions alone, so there the new value says all.
bool already_reported(const ReconcileInput& input, const Drift& drift, const Change& change) {
  const auto same = [&](const Change& other) {
    if (other.path != change.path || !same_value(input, change.path, other.new_value, change.new_value)) return false;
    return drift.against == Against::baseline || same_value(input, change.path, other.old_value, change.old_value);
  };
  return std::any_of(drift.changes.begin(), drift.changes.end(), same);
}

bool nothing_new(const ReconcileInput& input, const Drift& drift, const std::vector<Change>& now) {
  return std::all_of(now.begin(), now.end(),
                     [&](const Change& change) { return already_reported(input, drift, change); });
}

bool is_unchanged(const ReconcileInput& input, const Drift& drift, const DriftGroup& group) {
  return drift.operation == group.operation && drift.changes.size() == group.changes.size() &&
         nothing_new(input, drift, group.changes);
}

/// Nothing of the values: an id goes everywhere and stays for ever, and whoever came by a former key could try guesses
/// on it.
std::string new_id(const ReconcileInput& input, const StoredResource& stored, const GroupKey& key) {
  const auto [cls, against, action] = key;
  const Digest id = digest(0, {input.backend_uid, render(stored.id), render(cls), render(against), render(action),
                               std::to_string(input.now_ns), std::to_string(stored.revision)});
  std::string hex;
  for (int shift = 60; shift >= 0; shift -= 4) hex += "0123456789abcdef"[(id.low >> shift) & 15];
  return "d-" + hex;
}

std::vector<Change> swapped(std::vector<Change> changes) {
  for (auto& change : changes) std::swap(change.old_value, change.new_value);
  return changes;
}

/// Objects are filled member by member: what else is in them was not already_reported.
Status assign_into(Value& root, const Path& path, const Value& value) {
  const Value* there = find(root, path);
  if (!value.object() || there == nullptr || !there->object() || as_digest(value)) return assign(root, path, &value);
  for (const auto& [name, member] : *value.object()) DRIFTD_CHECK(assign_into(root, path.child(name), member));
  return {};
}

/// The value at `path` without what is not judged inside of it: a drift holds it so.
void prune_at(const ReconcileInput& input, const ResourceId& id, const Path& path, Value& body) {
  const Value* there = find(body, path);
  if (input.context == nullptr || there == nullptr) return;
  Value pruned = *there;
  prune_inside(*input.context, id, path, pruned);
  (void)assign(body, path, &pruned);  // it is there, so it can be replaced
}

/// What is there now has the values that the drift already_reported were wanted.
bool matches_expected(const ReconcileInput& input, const Drift& drift, const StoredResource& next) {
  Result<Value> body = parse(next.observed.value_or("{}"));
  if (!body || !input.schema) return false;
  for (const auto& change : drift.changes) {
    if (change.path != kIdentityPath) prune_at(input, next.id, attribute_path(change.path), *body);
  }
  Value wanted = *body;
  for (const auto& change : drift.changes) {
    if (change.path == kIdentityPath) continue;
    const Path path = attribute_path(change.path);
    const Result<Value> value = parse(change.old_value.value_or("null"));
    if (!value || !(change.old_value ? assign_into(wanted, path, *value) : assign(wanted, path, nullptr))) return false;
  }
  DiffOptions options;
  options.old_revision = input.schema->revision();
  options.id = input.id;
  options.keys = input.keys;
  return diff(wanted, *body, *input.schema, options).changes.empty();
}

/// Reverted: the difference went away by itself. Superseded: something else took its place.
DriftStatus closing_status(const ReconcileInput& input, const Drift& drift, const StoredResource& stored,
                           const StoredResource& next, const ChangeSet& change_set) {
  const auto touched = [&](const Change& change) { return related_to_any(change.path, change_set.replaced); };
  const auto declared = [&](const Change& change) { return related_to_any(change.path, change_set.declared); };
  const bool any_touched = std::any_of(drift.changes.begin(), drift.changes.end(), touched);
  bool reverted = false;
  if (change_set.rebased && drift.against == Against::baseline) {
    reverted = false;
  } else if (drift.against == Against::expectation) {
    const bool all_declared = std::all_of(drift.changes.begin(), drift.changes.end(), declared);
    const bool was_absent = drift.operation == Operation::deleted;  // gone still, and no source declares it any more
    reverted = change_set.gone ? !stored.baseline && !was_absent : all_declared && matches_expected(input, drift, next);
  } else if (change_set.gone) {
    reverted = drift.operation == Operation::created;
  } else {
    reverted = drift.operation == Operation::deleted || !any_touched;
  }
  return reverted ? DriftStatus::reverted : DriftStatus::superseded;
}

class Reconciler {
 public:
  Reconciler(const ReconcileInput& input, const StoredResource& stored, Judgement& out)
      : input_(input),
        stored_(stored),
        out_(out) {}

  void end(Drift drift, DriftStatus how);
  void update(Drift drift, DriftGroup group);
  void open(const GroupKey& key, DriftGroup group);

 private:
  void mark_staleness(Drift& drift, const DriftGroup& group) const;
  void keep(Drift drift) { out_.next.open.push_back(std::move(drift)); }
  void apply(Drift& drift);
  const ReconcileInput& input_;
  const StoredResource& stored_;
  Judgement& out_;
};

void Reconciler::end(Drift drift, DriftStatus how) {
  const DriftStatus from = drift.status;
  drift.status = how;
  drift.updated_ns = input_.now_ns;
  drift.stale_since_ns.reset();
  drift.claimed_by.clear();  // its notification is withdrawn
  drift.claim_until_ns.reset();
  std::vector<Change> changes = how == DriftStatus::reverted ? swapped(drift.changes) : drift.changes;
  out_.transitions.push_back({std::move(drift), from, false, std::move(changes)});
}

void Reconciler::mark_staleness(Drift& drift, const DriftGroup& group) const {
  if (!group.stale) {
    drift.stale_since_ns.reset();
  } else if (!drift.stale_since_ns) {
    drift.stale_since_ns = input_.now_ns;
  }
}

bool newly_withheld(const std::vector<Change>& was, const std::vector<Change>& now) {
  return std::any_of(now.begin(), now.end(), [&](const Change& change) {
    return change.redacted && std::any_of(was.begin(), was.end(), [&](const Change& other) {
             return other.path == change.path && !other.redacted;
           });
  });
}

void Reconciler::update(Drift drift, DriftGroup group) {
  const DriftStatus from = drift.status;
  const bool expired = is_expired(drift, input_.now_ns);
  const bool moved = !is_unchanged(input_, drift, group);
  mark_staleness(drift, group);
  // A decision covers the values it was made on: part of them going back leaves it, any other value asks again. That
  // all is gone says of each attribute that it is not there; once the resource is back, one that is missing is another
  // matter.
  const bool back = drift.operation == Operation::deleted && group.operation != Operation::deleted;
  const bool decision_over = expired || back || (moved && !nothing_new(input_, drift, group.changes));
  if (decision_over && drift.decided_ns) clear_decision(drift);
  if (!moved) {
    out_.suppressed["standing"] += group.changes.size();
    // The same values; what was shown of them is shown no more.
    if (newly_withheld(drift.changes, group.changes)) drift.changes = std::move(group.changes);
    drift.digest = digest_of(drift.changes, drift.against);  // an earlier agent left out what is wanted
  } else {
    drift.operation = group.operation;
    drift.changes = std::move(group.changes);
    drift.digest = digest_of(drift.changes, drift.against);
    if (!drift.decided_ns) {
      drift.reason = group.reason;
      drift.actor.clear();
    }
    drift.claimed_by.clear();  // whoever claimed it looked at another value
    drift.claim_until_ns.reset();
  }
  if (moved || expired) {
    drift.updated_ns = input_.now_ns;
    out_.transitions.push_back({drift, from, moved, drift.changes});
  }
  keep(std::move(drift));
}

/// A drift whose policy says so moves the baseline at once; where that fails a person is asked.
void Reconciler::apply(Drift& drift) {
  const Status accepted = accept(out_.next, drift);
  if (accepted) return;
  drift.status = DriftStatus::pending;
  drift.reason = "the baseline could not follow: " + accepted.error().message;
}

void Reconciler::open(const GroupKey& key, DriftGroup group) {
  Drift drift;
  std::tie(drift.cls, drift.against, drift.action) = key;
  drift.id = new_id(input_, stored_, key);
  drift.backend_uid = input_.backend_uid;
  drift.resource = out_.next.id;
  drift.operation = group.operation;
  drift.changes = std::move(group.changes);
  drift.digest = digest_of(drift.changes, drift.against);
  drift.opened_ns = drift.updated_ns = input_.now_ns;
  drift.reason = group.reason;
  const bool by_scope = !input_.accepted_by.empty() && drift.operation == Operation::deleted;
  if (by_scope) {
    drift.status = DriftStatus::approved;
    drift.actor = input_.accepted_by;
    drift.reason = "approved with scope/" + drift.resource.kind;
    drift.decided_ns = input_.now_ns;
  } else if (drift.action == Action::automatic) {
    drift.status = DriftStatus::auto_applied;
  } else if (drift.action == Action::ignore) {
    drift.status = DriftStatus::ignored;
  }
  if (!drift.open()) apply(drift);
  out_.transitions.push_back({drift, std::nullopt, false, drift.changes});
  if (drift.open()) keep(std::move(drift));
}

bool by_path(const Change& a, const Change& b) { return a.path < b.path; }
bool same_path(const Change& a, const Change& b) { return a.path == b.path; }

}  // namespace

bool is_expired(const Drift& drift, Nanos now_ns) {
  return drift.decided_ns && drift.expires_ns && *drift.expires_ns <= now_ns && drift.status != DriftStatus::pending;
}

void clear_decision(Drift& drift) {
  drift.status = drift.action == Action::ignore ? DriftStatus::ignored : DriftStatus::pending;
  drift.actor.clear();
  drift.reason.clear();
  drift.decided_ns.reset();
  drift.expires_ns.reset();
}

Status accept(StoredResource& row, const Drift& drift) {
  if (drift.operation == Operation::deleted) {
    row.baseline.reset();
    row.external_name.clear();
    return {};
  }
  if (drift.operation == Operation::created) {
    row.baseline = row.observed;
    row.external_name = row.observed_external_name;
    return {};
  }
  if (!row.baseline) return fail(Code::internal, render(row.id) + " has no baseline that could follow");
  DRIFTD_TRY(Value baseline, parse(*row.baseline));
  bool renamed = false;
  for (const auto& change : drift.changes) {
    if (change.path == kIdentityPath) {
      renamed = true;
    } else if (!change.new_value) {
      DRIFTD_CHECK(assign(baseline, attribute_path(change.path), nullptr));
    } else {
      DRIFTD_TRY(const Value value, parse(*change.new_value));
      DRIFTD_CHECK(assign(baseline, attribute_path(change.path), &value));
    }
  }
  if (renamed) row.external_name = row.observed_external_name;
  row.baseline = render(baseline);
  return {};
}

void reconcile(const ReconcileInput& input, const StoredResource& stored, ChangeSet change_set, Judgement& out) {
  for (auto& [key, group] : change_set.groups) {
    std::stable_sort(group.changes.begin(), group.changes.end(), by_path);
    group.changes.erase(std::unique(group.changes.begin(), group.changes.end(), same_path), group.changes.end());
  }
  out.next.open.clear();
  Reconciler reconciler(input, stored, out);
  const bool by_scope = change_set.gone && !input.accepted_by.empty();  // each deletion is a new, approved drift
  for (const auto& drift : stored.open) {
    if (by_scope || !change_set.groups.contains(key_of(drift))) {
      reconciler.end(drift, closing_status(input, drift, stored, out.next, change_set));
    }
  }
  for (const auto& drift : stored.open) {
    const auto found = change_set.groups.find(key_of(drift));
    if (by_scope || found == change_set.groups.end()) continue;
    reconciler.update(drift, std::move(found->second));
    found->second.changes.clear();
  }
  for (auto& [key, group] : change_set.groups) {
    if (!group.changes.empty()) reconciler.open(key, std::move(group));
  }
}

}  // namespace driftd::core
