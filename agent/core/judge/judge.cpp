// SPDX-License-Identifier: Apache-2.0
#include "core/judge/judge.hpp"

#include "base/digest.hpp"
#include "core/judge/stages.hpp"
#include "core/judge/upgrade.hpp"
#include "core/redact.hpp"

namespace driftd::core {
namespace {

ReconcileInput reconcile_input(const JudgeContext& context, const ResourceId& id) {
  return {context.backend_uid,
          context.schema.get(),
          context.now_ns,
          context.deletions_accepted_by,
          context.keys.get(),
          id,
          &context};
}

/// Copies the observation into the row; the baseline is up to the later stages. If the identity is not reported now,
/// the last one stays.
void observe(const JudgeContext& context, const Observation& seen, const Value& body, StoredResource& row) {
  row.id = seen.id;
  row.observed = render(body);
  if (!seen.external_name.empty()) row.observed_external_name = seen.external_name;
  row.origin = seen.origin;
  row.version = seen.version;
  row.status = seen.status;
  row.metadata = seen.metadata;
  row.schema_revision = context.schema->revision();
  row.observed_ns = seen.observed_ns;
  row.digest = seen.digest;
  row.rules_generation = generation_under(context);
}

std::vector<std::string> paths_of(const std::vector<Unread>& unread) {
  std::vector<std::string> out;
  for (const auto& each : unread) out.push_back(each.path);
  return out;
}

/// Makes the body the baseline. Only expectations and declarations are judged, already now: `driftd once` with a new
/// store has no second refresh (semantics 6).
void make_baseline(const JudgeContext& context, const StoredResource& stored, const Present& seen, const Value& body,
                   Judgement& out) {
  out.next.baseline = out.next.observed;
  out.next.external_name = seen.observation.external_name;
  out.next.was_unread = paths_of(seen.observation.unread);
  ChangeSet change_set;
  change_set.rebased = true;
  collect_expected(context, stored, seen, body, out, change_set);
  reconcile(reconcile_input(context, out.next.id), stored, std::move(change_set), out);
}

/// The resource is unknown: open drifts stay open and become stale. If there are any, the digest is cleared, so that
/// the next record is judged even if it equals the last one.
Judgement judge_unknown(const JudgeContext& context, const StoredResource& stored, const Unknown& reading) {
  Judgement out = expire_decisions(stored, context.now_ns);
  out.unknown.push_back({"", reading.reason});
  for (auto& drift : out.next.open) {
    if (!drift.stale_since_ns) drift.stale_since_ns = reading.at_ns;
    out.next.digest = {};
  }
  return out;
}

/// Returns the stored baseline, or an empty object if there is none.
Result<Value> baseline_of(const StoredResource& stored) { return parse(stored.baseline ? *stored.baseline : "{}"); }

/// Returns true if the resource is compared with a baseline, false if its reading becomes the baseline (semantics 6).
bool has_baseline(const JudgeContext& context, const StoredResource& stored) {
  return context.established || (context.partial && stored.baseline);
}

/// `change_set` has what an upgrade already found out about the baseline.
Judgement judge_present(const JudgeContext& context, const StoredResource& stored, const Present& seen,
                        ChangeSet change_set = {}) {
  const Result<Value> body = parse(seen.observation.body);
  if (!body)
    return judge_unknown(context, stored, {"unreadable body: " + body.error().message, seen.observation.observed_ns});
  if (body->object() == nullptr)
    return judge_unknown(context, stored, {"unreadable body: expected a JSON object", seen.observation.observed_ns});
  const Result<Value> baseline = baseline_of(stored);
  if (!baseline) {
    return judge_unknown(context, stored,
                         {"unreadable stored baseline: " + baseline.error().message, seen.observation.observed_ns});
  }
  Judgement out;
  out.next = stored;
  observe(context, seen.observation, *body, out.next);
  if (!has_baseline(context, stored)) {
    make_baseline(context, stored, seen, *body, out);
    return out;
  }
  if (!stored.baseline) out.next.was_unread = paths_of(seen.observation.unread);
  collect_present(context, stored, seen, *body, *baseline, out, change_set);
  reconcile(reconcile_input(context, out.next.id), stored, std::move(change_set), out);
  return out;
}

Judgement judge_absent(const JudgeContext& context, const StoredResource& stored, const Absent& gone) {
  const Result<Value> baseline = baseline_of(stored);
  if (!baseline) {
    return judge_unknown(context, stored,
                         {"unreadable stored baseline: " + baseline.error().message, gone.observed_ns});
  }
  Judgement out;
  out.next = stored;
  out.next.observed.reset();
  out.next.observed_external_name.clear();
  out.next.observed_ns = gone.observed_ns;
  out.next.digest = {};
  out.next.rules_generation = generation_under(context);
  ChangeSet change_set;
  change_set.gone = true;
  change_set.rebased = !has_baseline(context, stored);
  if (change_set.rebased) {
    out.next.baseline.reset();
    out.next.external_name.clear();
  } else if (stored.baseline) {
    collect_deleted(context, stored, *baseline, out, change_set);
  } else {
    collect_missing_declared(context, stored, out, change_set);
  }
  reconcile(reconcile_input(context, out.next.id), stored, std::move(change_set), out);
  return out;
}

}  // namespace

std::uint64_t generation_under(const JudgeContext& context) {
  if (!context.established && !context.partial) return 0;
  const Digest schema = digest(
      0, {context.schema->kind(), std::to_string(context.schema->revision()), std::to_string(kNormaliserRevision)});
  const std::uint64_t rules = context.rules->generation ^ schema.low;
  std::uint64_t declaration_sum = 0;
  for (const auto& each : context.declared) declaration_sum += generation_term(each.source_uid, each.digest);
  return mix_declarations(rules == 0 ? 1 : rules, declaration_sum);
}

Judgement judge(const JudgeContext& context, const StoredResource& stored, const Reading& reading) {
  if (const auto* seen = std::get_if<Present>(&reading)) return judge_present(context, stored, *seen);
  if (const auto* gone = std::get_if<Absent>(&reading)) return judge_absent(context, stored, *gone);
  return judge_unknown(context, stored, std::get<Unknown>(reading));
}

Judgement judge_upgraded(const JudgeContext& context, const StoredResource& stored, const Present& seen,
                         const std::string& baseline) {
  if (!stored.baseline || !has_baseline(context, stored)) return judge_present(context, stored, seen);
  auto upgraded = adopt_upgraded_baseline(context, stored, baseline);
  if (!upgraded) return judge_unknown(context, stored, {upgraded.error().message, seen.observation.observed_ns});
  ChangeSet change_set;
  change_set.upgraded = true;
  change_set.replaced = std::move(upgraded->moved);
  return judge_present(context, upgraded->row, seen, std::move(change_set));
}

Judgement expire_decisions(const StoredResource& stored, Nanos now_ns) {
  Judgement out;
  out.next = stored;
  for (auto& drift : out.next.open) {
    const DriftStatus from = drift.status;
    const bool withdrawn = drop_void_approvals(drift, now_ns);
    if (!is_expired(drift, now_ns) && !withdrawn) continue;
    if (!withdrawn) clear_decision(drift);
    drift.updated_ns = now_ns;
    out.transitions.push_back({drift, from, false, drift.changes});
  }
  return out;
}

}  // namespace driftd::core
