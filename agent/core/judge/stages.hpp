// SPDX-License-Identifier: Apache-2.0
// Parts of judge() and decide(); no other room includes this.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "core/judge/expected.hpp"
#include "core/judge/judge.hpp"

namespace driftd::core {

/// What makes two drifts of one resource the same drift.
using GroupKey = std::tuple<ChangeClass, Against, Action>;
inline GroupKey key_of(const Drift& drift) { return {drift.cls, drift.against, drift.action}; }

/// The changes that stand now under one key.
struct DriftGroup {
  Operation operation = Operation::changed;
  std::vector<Change> changes;
  std::string reason;  ///< why the action is not the one that the policy names; else empty
  bool stale = false;  ///< part of it could not be read now and stands as last seen
};

/// What one reading means before it meets the open drifts.
struct ChangeSet {
  std::map<GroupKey, DriftGroup> groups;
  /// Paths that differ, were re-baselined or filled: a drift on them that ends is superseded, else it is reverted.
  std::vector<std::string> replaced;
  std::vector<std::string> declared;  ///< paths that expectations name
  bool gone = false;
  bool upgraded = false;  ///< the baseline was converted to the current schema revision
  bool rebased = false;   ///< the whole resource is a new baseline: every drift against a baseline is superseded
};

/// Everything needed to open, continue and end drifts.
struct ReconcileInput {
  std::string backend_uid;
  const KindSchema* schema = nullptr;  ///< nullptr: values are compared as text
  Nanos now_ns = 0;
  std::string accepted_by;                ///< JudgeContext::deletions_accepted_by
  const RedactionKeys* keys = nullptr;    ///< JudgeContext::keys
  ResourceId id;                          ///< whose values are compared
  const JudgeContext* context = nullptr;  ///< nullptr: there are no rules
};

/// The path of an attribute; the identity's is empty: it is the resource itself.
Path attribute_path(const std::string& text);

/// Diffs a reading of an established kind into a change_set; fills and re-baselines `out.next`. [judge_collect.cpp]
void collect_present(const JudgeContext& context, const StoredResource& stored, const Present& seen, const Value& body,
                     const Value& baseline, Judgement& out, ChangeSet& change_set);
/// Of a kind that has no baseline yet: only what expectations and declarations say of it. [judge_collect.cpp]
void collect_expected(const JudgeContext& context, const StoredResource& stored, const Present& seen, const Value& body,
                      Judgement& out, ChangeSet& change_set);
void collect_deleted(const JudgeContext& context, const StoredResource& stored, const Value& baseline, Judgement& out,
                     ChangeSet& change_set);

/// What never was accepted and is not there, though a source declares it. [judge_collect.cpp]
void collect_missing_declared(const JudgeContext& context, const StoredResource& stored, Judgement& out,
                              ChangeSet& change_set);

/// A stored row whose baseline a provider's upgrade gave in the current schema revision's form.
struct UpgradedRow {
  StoredResource row;
  std::vector<std::string> moved;  ///< paths of open drifts whose baseline the upgrade moved or dropped
};
/// Takes over the upgraded body. What it holds of digests at another path or under another reading is left out and
/// filled from what is seen: a digest is of its path and normal form. `corrupt` when either body is no object.
/// [judge_upgrade.cpp]
Result<UpgradedRow> adopt_upgraded_baseline(const JudgeContext& context, const StoredResource& stored,
                                            const std::string& body);
/// Values of both rules mean the same.
bool same_interpretation(const AttributeRule& a, const AttributeRule& b);

/// Cuts what is not judged out of a change of a whole subtree or list; false: nothing is left of it. [judge_prune.cpp]
bool prune(const JudgeContext& context, const ResourceId& id, Change& change);

/// Cuts what is not judged out of the members and elements of the value at `path`.
void prune_inside(const JudgeContext& context, const ResourceId& id, const Path& path, Value& value);

/// Ends, continues and opens drifts so that `out.next.open` is what stands. [judge_reconcile.cpp]
void reconcile(const ReconcileInput& input, const StoredResource& stored, ChangeSet change_set, Judgement& out);

/// Moves the baseline of `row` by exactly the changes of `drift`. [judge_reconcile.cpp]
Status accept(StoredResource& row, const Drift& drift);
/// Takes a decision back to what the policy says: pending, or ignored by policy.
void clear_decision(Drift& drift);
/// It was decided, and the decision has run out.
bool is_expired(const Drift& drift, Nanos now_ns);

}  // namespace driftd::core
