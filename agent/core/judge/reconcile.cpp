// SPDX-License-Identifier: Apache-2.0
// Last stage of judge(): which open drifts are updated, which end and how, and which are new.
#include <algorithm>

#include "core/judge/diff.hpp"
#include "core/judge/stages.hpp"
#include "core/redact.hpp"

namespace driftd::core {
namespace {

/// Returns true if one value is clear text and the other is its digest: an agent that withholds more than an earlier
/// version did not see a change.
bool same_in_another_form(const ReconcileInput& input, const std::string& path, const Value& left, const Value& right) {
  const auto digest = as_digest(left) ? as_digest(left) : as_digest(right);
  if (!digest || input.keys == nullptr) return false;
  const Value& clear = as_digest(left) ? right : left;
  const auto sealed =
      sealed_digest(clear, input.id, attribute_path(path), *input.schema, *input.keys, digest->withheld);
  // out of memory: reporting the change once more is better than hiding it
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

/// Returns true if the drift already has this change. Against an expectation both values count: 3 instead of 1 is not
/// the same as 3 instead of 100. A baseline changes only by decisions, so there the new value is enough.
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

std::vector<Change> swapped(std::vector<Change> changes) {
  for (auto& change : changes) std::swap(change.old_value, change.new_value);
  return changes;
}

/// Assigns objects member by member, because a drift does not list the other members.
Status assign_into(Value& root, const Path& path, const Value& value) {
  const Value* there = find(root, path);
  if (!value.object() || there == nullptr || !there->object() || as_digest(value)) return assign(root, path, &value);
  for (const auto& [name, member] : *value.object()) DRIFTD_CHECK(assign_into(root, path.child(name), member));
  return {};
}

/// Removes what is not judged from the value at `path`, as was done for the values of the drift.
void prune_at(const ReconcileInput& input, const ResourceId& id, const Path& path, Value& body) {
  const Value* there = find(body, path);
  if (input.context == nullptr || there == nullptr) return;
  Value pruned = *there;
  prune_inside(*input.context, id, path, pruned);
  (void)assign(body, path, &pruned);  // the path exists, so this cannot fail
}

/// Returns true if the body now has the values that the drift expected.
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

/// Returns how a drift ends: reverted if the difference disappeared by itself, superseded if something else replaced
/// it.
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
    const bool was_absent = drift.operation == Operation::deleted;  // still gone, but no source declares it any more
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
  Reconciler(const ReconcileInput& input, const StoredResource& stored, bool new_form, Judgement& out)
      : input_(input),
        stored_(stored),
        new_form_(new_form),
        out_(out) {}

  void end(Drift drift, DriftStatus how);
  void update(Drift drift, DriftGroup group);
  void open(const GroupKey& key, DriftGroup group);

 private:
  void mark_staleness(Drift& drift, const DriftGroup& group) const;
  bool is_own_write(const Drift& drift) const;
  void keep(Drift drift) { out_.next.open.push_back(std::move(drift)); }
  void apply(Drift& drift);
  const ReconcileInput& input_;
  const StoredResource& stored_;
  const bool new_form_;  ///< as in ChangeSet
  Judgement& out_;
};

bool Reconciler::is_own_write(const Drift& drift) const {
  const auto* context = input_.context;
  return context != nullptr && context->own_write && context->own_write->drift_id == drift.id &&
         context->own_write->digest == drift.digest;
}

void Reconciler::end(Drift drift, DriftStatus how) {
  const DriftStatus from = drift.status;
  if (how == DriftStatus::reverted && is_own_write(drift)) {
    how = DriftStatus::enforced;
    drift.actor = input_.context->own_write->actor;
    drift.reason = input_.context->own_write->reason;
    drift.decided_ns = input_.now_ns;
    drift.expires_ns.reset();
  }
  drift.status = how;
  drift.updated_ns = input_.now_ns;
  drift.stale_since_ns.reset();
  drift.claimed_by.clear();  // its notification is withdrawn
  drift.claim_until_ns.reset();
  std::vector<Change> changes =
      how == DriftStatus::reverted || how == DriftStatus::enforced ? swapped(drift.changes) : drift.changes;
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
  const bool same_value = new_form_ && drift.against == Against::baseline && drift.operation == group.operation;
  const bool differs = !is_unchanged(input_, drift, group), moved = differs && !same_value;
  mark_staleness(drift, group);
  drift.approvals_needed = group.stale ? std::max(group.approvals, drift.approvals_needed) : group.approvals;
  // A decision covers the values that it was made on. It stays if some of them went back; any other value clears it. A
  // deletion says of each attribute that it is absent, so once the resource is back, an attribute that is still missing
  // needs a new decision.
  const bool back = drift.operation == Operation::deleted && group.operation != Operation::deleted;
  const bool decision_over = expired || back || (moved && !nothing_new(input_, drift, group.changes));
  if (decision_over && drift.decided_ns) clear_decision(drift);
  if (!moved) {
    out_.suppressed["standing"] += group.changes.size();
    // The values are the same, but some that were shown are now withheld.
    if (differs || newly_withheld(drift.changes, group.changes)) drift.changes = std::move(group.changes);
    // digests of earlier versions did not include the expected values
    drift.digest = digest_of(drift.changes, drift.against);
  } else {
    drift.operation = group.operation;
    drift.changes = std::move(group.changes);
    drift.digest = digest_of(drift.changes, drift.against);
    if (!drift.decided_ns) {
      drift.reason = group.reason;
      drift.actor.clear();
    }
    drift.claimed_by.clear();  // whoever claimed or approved it saw other values
    drift.claim_until_ns.reset();
    drift.approvals.clear();
  }
  if (moved || expired) {
    drift.updated_ns = input_.now_ns;
    out_.transitions.push_back({drift, from, moved, drift.changes});
  }
  keep(std::move(drift));
}

/// Moves the baseline at once for a drift that is accepted by its policy or by an approval. If that fails, the drift
/// becomes pending.
void Reconciler::apply(Drift& drift) {
  const Status accepted = accept(out_.next, drift);
  if (accepted) return;
  drift.status = DriftStatus::pending;
  drift.reason = "the baseline could not follow: " + accepted.error().message;
}

void Reconciler::open(const GroupKey& key, DriftGroup group) {
  Drift drift;
  std::tie(drift.cls, drift.against, drift.action) = key;
  drift.id = new_drift_id(input_, stored_, key);
  drift.backend_uid = input_.backend_uid;
  drift.resource = out_.next.id;
  drift.operation = group.operation;
  drift.changes = std::move(group.changes);
  drift.digest = digest_of(drift.changes, drift.against);
  drift.opened_ns = drift.updated_ns = input_.now_ns;
  drift.reason = group.reason;
  drift.approvals_needed = group.approvals;
  const bool by_scope = !input_.deletions_accepted_by.empty() && drift.operation == Operation::deleted;
  if (by_scope) {
    drift.status = DriftStatus::approved;
    drift.actor = input_.deletions_accepted_by;
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
  if (!row.baseline) return fail(Code::internal, render(row.id) + " has no baseline to update");
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
  Reconciler reconciler(input, stored, change_set.new_form, out);
  const bool by_scope = change_set.gone && !input.deletions_accepted_by.empty();  // then each deletion is a new,
                                                                                  // approved drift
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
