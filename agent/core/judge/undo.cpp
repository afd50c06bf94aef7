// SPDX-License-Identifier: Apache-2.0
// Undoes an approval, as long as nothing was built on it.
#include <algorithm>

#include "base/digest.hpp"
#include "core/judge/stages.hpp"
#include "core/value/value.hpp"

namespace driftd::core {
namespace {

constexpr const char* kWhole = "";  ///< path of the whole body

std::string name_of(const Drift& drift) { return "drift " + drift.id + " of " + render(drift.resource); }

bool is_whole(const Drift& drift) {
  return drift.operation == Operation::created || drift.operation == Operation::deleted;
}

bool overlap(const Drift& one, const Drift& other) {
  std::vector<std::string> paths;
  for (const auto& change : other.changes) paths.push_back(change.path);
  return std::any_of(one.changes.begin(), one.changes.end(),
                     [&](const Change& change) { return related_to_any(change.path, paths); });
}

/// Returns the baseline's value at a path; absent if it has none there, or if there is no baseline.
Result<std::optional<std::string>> value_at(const StoredResource& row, const std::string& path) {
  if (path == kWhole || !row.baseline) return row.baseline;
  DRIFTD_TRY(const Value body, parse(*row.baseline));
  const Value* found = find(body, attribute_path(path));
  return found == nullptr ? std::optional<std::string>() : std::optional(render(*found));
}

/// Returns the digest of what the baseline has at the paths of `former`.
Result<std::string> digest_at(const StoredResource& row, const FormerBaseline& former) {
  std::string text = std::to_string(row.external_name.size()) + ":" + row.external_name;
  for (const auto& [path, was] : former.values) {
    DRIFTD_TRY(const auto value, value_at(row, path));
    text += std::to_string(path.size()) + ":" + path;
    text += value ? "+" + std::to_string(value->size()) + ":" + *value : "-";
  }
  return to_hex(sha256(text));
}

/// Puts the former values back.
Status restore(StoredResource& row, const FormerBaseline& former) {
  row.external_name = former.external_name;
  for (const auto& [path, was] : former.values) {
    if (path == kWhole) {
      row.baseline = was;
      continue;
    }
    DRIFTD_TRY(Value body, parse(row.baseline.value_or("{}")));
    const Result<Value> value = was ? parse(*was) : Result<Value>(Value());
    if (!value) return fail(value.error());
    DRIFTD_CHECK(assign(body, attribute_path(path), was ? &*value : nullptr));
    row.baseline = render(body);
  }
  return {};
}

/// Checks that the approval still is what the resource stands on.
Status check_unmoved(const StoredResource& row, const Drift& approved) {
  const auto moved = [&](const Drift& other) {
    return other.against == Against::baseline &&
           (is_whole(approved) || is_whole(other) || key_of(other) == key_of(approved) || overlap(other, approved));
  };
  const auto found = std::find_if(row.open.begin(), row.open.end(), moved);
  if (found != row.open.end()) {
    return fail(Code::conflict, name_of(approved) + ": the value moved after its approval, which is drift " +
                                    found->id + ": " + render_changes(*found) + "; decide that one first");
  }
  const bool created = approved.operation != Operation::deleted;
  if (row.observed.has_value() != created) {
    return fail(Code::conflict, name_of(approved) + ": the resource " +
                                    (created ? "is not there any more" : "is there again") +
                                    ", so the approval has nothing left to undo");
  }
  DRIFTD_TRY(const std::string now, digest_at(row, *approved.former));
  if (now == approved.former->accepted && row.schema_revision == approved.former->schema_revision) return {};
  return fail(Code::conflict, name_of(approved) + ": the baseline is no longer what its approval made of it, because " +
                                  "another drift was accepted or the schema changed since; approve the value that " +
                                  "you want when it is next read");
}

Status check_undo(const Drift& approved, const Decision& decision) {
  if (approved.status != DriftStatus::approved) {
    return fail(Code::conflict, name_of(approved) + " is closed: " + std::string(render(approved.status)) +
                                    "; only an approval, a rejection or an ignore can be undone");
  }
  if (decision.digest && *decision.digest != approved.digest) {
    return fail(Code::conflict, name_of(approved) + ": what was approved is " + render_changes(approved) +
                                    ", not the value that you name; look again, then decide");
  }
  if (approved.former) return {};
  return fail(Code::conflict,
              name_of(approved) +
                  ": its former baseline is not known any more, because it was approved together with " +
                  "others, by an earlier version, or before the installation key was rotated; approve the value that " +
                  "you want when it is next read");
}

}  // namespace

Result<FormerBaseline> former_baseline(const StoredResource& row, const Drift& drift) {
  FormerBaseline out;
  out.external_name = row.external_name;
  out.schema_revision = row.schema_revision;
  if (is_whole(drift)) out.values.emplace_back(kWhole, row.baseline);
  for (const auto& change : is_whole(drift) ? std::vector<Change>{} : drift.changes) {
    if (change.path == kIdentityPath) continue;
    DRIFTD_TRY(auto value, value_at(row, change.path));
    out.values.emplace_back(change.path, std::move(value));
  }
  StoredResource after = row;
  DRIFTD_CHECK(accept(after, drift));
  DRIFTD_TRY(out.accepted, digest_at(after, out));
  return out;
}

Result<Judgement> undo_approval(const StoredResource& stored, const Drift& approved, const Decision& decision) {
  DRIFTD_CHECK(check_undo(approved, decision));
  Judgement out;
  out.next = stored;
  if (stored.revision == 0) out.next.schema_revision = approved.former->schema_revision;  // it was forgotten since
  DRIFTD_CHECK(check_unmoved(out.next, approved));
  DRIFTD_CHECK(restore(out.next, *approved.former));
  out.next.rules_generation = 0;  // the next reading is judged, also if it is the same record
  Drift drift = approved;
  drift.status = DriftStatus::pending;
  drift.actor = decision.actor;
  drift.reason = decision.reason;
  drift.updated_ns = decision.at_ns;
  drift.decided_ns.reset();
  drift.expires_ns.reset();
  drift.approvals.clear();
  drift.former.reset();
  out.next.open.push_back(drift);
  out.transitions.push_back({drift, DriftStatus::approved, false, drift.changes});
  return out;
}

}  // namespace driftd::core
