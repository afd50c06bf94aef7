// SPDX-License-Identifier: Apache-2.0
// The stages of judge() and decide() (README.md); no other room includes this.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "core/judge/expected.hpp"
#include "core/judge/judge.hpp"
#include "core/judge/rules.hpp"
#include "core/value/schema.hpp"

namespace driftd::core {

/// Identifies a drift among the open drifts of one resource (semantics 9).
using GroupKey = std::tuple<ChangeClass, Against, Action>;
inline GroupKey key_of(const Drift& drift) { return {drift.cls, drift.against, drift.action}; }

/// The changes of one key that the latest reading shows.
struct DriftGroup {
  Operation operation = Operation::changed;
  std::vector<Change> changes;
  std::string reason;  ///< why the action is not the policy's, or who declared the value; else empty
  int approvals = 1;   ///< the most that the policy of one of the changes asks for
  bool stale = false;  ///< some of it could not be read now and is kept as last read
};

/// What one reading shows, before it is compared with the open drifts.
struct ChangeSet {
  std::map<GroupKey, DriftGroup> groups;
  /// Paths that differ, got a new baseline or were filled in. A drift that ends is superseded if it is on one of them,
  /// else it is reverted.
  std::vector<std::string> replaced;
  std::vector<std::string> declared;  ///< paths that expectations or declarations name
  bool gone = false;
  /// Nobody wrote the resource, but it reads differently because the schema has a newer revision. An open drift takes
  /// the new form without an event, and its decision stays.
  bool new_form = false;
  bool upgraded = false;  ///< the provider converted the baseline to the current schema revision
  bool rebased = false;   ///< the whole resource got a new baseline, so every drift against the baseline is superseded
};

/// What reconcile() needs besides the change set.
struct ReconcileInput {
  std::string backend_uid;
  const KindSchema* schema = nullptr;  ///< nullptr: values are compared as text (pseudo-resources)
  Nanos now_ns = 0;
  std::string deletions_accepted_by;      ///< as in JudgeContext
  const RedactionKeys* keys = nullptr;    ///< as in JudgeContext
  ResourceId id;                          ///< of the resource whose values are compared
  const JudgeContext* context = nullptr;  ///< nullptr: there are no rules (pseudo-resources)
};

/// Parses the path of a change. The path of kIdentityPath is empty: it stands for the resource itself.
Path attribute_path(const std::string& text);

/// Compares a reading with the baseline and the expectations; updates the baseline of `out.next`. [collect.cpp]
void collect_present(const JudgeContext& context, const StoredResource& stored, const Present& seen, const Value& body,
                     const Value& baseline, Judgement& out, ChangeSet& change_set);
/// Compares a reading with expectations and declarations only, for a kind that has no baseline yet. [collect.cpp]
void collect_expected(const JudgeContext& context, const StoredResource& stored, const Present& seen, const Value& body,
                      Judgement& out, ChangeSet& change_set);
void collect_deleted(const JudgeContext& context, const StoredResource& stored, const Value& baseline, Judgement& out,
                     ChangeSet& change_set);

/// Handles a resource that a source declares, but that does not exist and never was accepted. [collect.cpp]
void collect_missing_declared(const JudgeContext& context, const StoredResource& stored, Judgement& out,
                              ChangeSet& change_set);

/// Returns `a.b` for `a.b.**`. [unread.cpp]
std::string without_double_star(const std::string& pattern);
/// Adds what the reading calls unread to `unknown`, also where neither body has it: otherwise an attribute that nobody
/// could ever read would count as compared. Left out is what is not judged (ignored, volatile) and what the system or
/// the settings do not offer (`unsupported`), unless nothing of the resource can be read. [unread.cpp]
void add_unread(const JudgeContext& context, const ResourceId& id, const Observation& seen,
                std::vector<UnknownPath>& unknown);

/// A stored row whose baseline the provider converted to the current schema revision.
struct UpgradedRow {
  StoredResource row;
  std::vector<std::string> moved;  ///< paths of open drifts whose baseline value the upgrade changed or dropped
};
/// Returns the row with the upgraded body as its baseline. A digest is bound to its path and normal form, so digests
/// that moved to another path or are under a changed rule are dropped and filled in from the current reading. Returns
/// `corrupt` if either body is not a JSON object. [upgrade.cpp]
Result<UpgradedRow> adopt_upgraded_baseline(const JudgeContext& context, const StoredResource& stored,
                                            const std::string& body);

/// For a kind whose schema is `versioned`: returns true if the stored observation and `seen` are of the same write of
/// the same resource. An observation without any attribute is one that could not be read: what it lacks may have been
/// there. [reread.cpp]
bool is_same_write(const KindSchema& schema, const StoredResource& stored, const Observation& seen);

/// For a kind whose schema is `versioned`: if nobody wrote the resource since the stored observation (its version is
/// the same), puts what reads differently now into `baseline` and returns those paths. What differed before, or could
/// not be read, stays as it is in the baseline. [reread.cpp]
std::vector<std::string> adopt_reread(const JudgeContext& context, const StoredResource& stored,
                                      const Observation& seen, const Value& body, Value& baseline);

/// Removes what is not judged (ignored, volatile, computed) from a change of a whole subtree or list. Returns false if
/// nothing is left of the change. [prune.cpp]
bool prune(const JudgeContext& context, const ResourceId& id, Change& change);

/// Removes what is not judged from the members and elements of the value at `path`. [prune.cpp]
void prune_inside(const JudgeContext& context, const ResourceId& id, const Path& path, Value& value);

/// Ends, updates and opens drifts, so that `out.next.open` matches the change set. [reconcile.cpp]
void reconcile(const ReconcileInput& input, const StoredResource& stored, ChangeSet change_set, Judgement& out);

/// Returns the id of a drift that is opened now: `d-` and 16 hex digits. It contains nothing of the values: it is
/// published and kept for ever, and whoever gets an old key could test guesses against it. [drift_id.cpp]
std::string new_drift_id(const ReconcileInput& input, const StoredResource& stored, const GroupKey& key);

/// Applies exactly the changes of `drift` to the baseline of `row`. [reconcile.cpp]
Status accept(StoredResource& row, const Drift& drift);
/// Clears the decision: the drift is pending again, or ignored if the policy says so.
void clear_decision(Drift& drift);
/// Returns true if the drift was decided and the decision has expired.
bool is_expired(const Drift& drift, Nanos now_ns);
/// Removes the approvals that ran out or were given for other values. Returns true if one ran out. [approvals.cpp]
bool drop_void_approvals(Drift& drift, Nanos now_ns);
/// Adds an approval to a drift that needs several. Returns `conflict` if this actor must not give it. [approvals.cpp]
Status add_approval(Drift& drift, const StoredResource& row, const Decision& decision);
/// Takes back one approval of a pending drift: the actor's own, or else the last. [approvals.cpp]
Status withdraw_approval(Drift& drift, const Decision& decision);
/// Returns what `drift` is about to replace in the baseline, as accept() will write it. [undo.cpp]
Result<FormerBaseline> former_baseline(const StoredResource& row, const Drift& drift);

}  // namespace driftd::core
