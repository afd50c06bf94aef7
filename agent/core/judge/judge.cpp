// SPDX-License-Identifier: Apache-2.0
#include "core/judge/judge.hpp"

#include "base/digest.hpp"
#include "core/judge/parts.hpp"
#include "core/judge/upgrade.hpp"
#include "core/redact.hpp"

namespace driftd::core {
namespace {

Setting setting_of(const JudgeContext& context, const ResourceId& id) {
  return {context.backend_uid,
          context.schema.get(),
          context.now_ns,
          context.deletions_accepted_by,
          context.keys.get(),
          id,
          &context};
}

/// The row takes what was just read; whether the baseline follows is for others to say. An identity that is not said
/// stays as it was last said.
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
  row.rules_generation = judged_under(context);
}

std::vector<std::string> paths_of(const std::vector<Unread>& unread) {
  std::vector<std::string> out;
  for (const auto& each : unread) out.push_back(each.path);
  return out;
}

/// The body as seen is the baseline. Only what must hold whatever the baseline says is judged: a pipeline with a fresh
/// store has no second refresh (semantics 6).
void make_baseline(const JudgeContext& context, const StoredResource& stored, const Seen& seen, const Value& body,
                   Judgement& out) {
  out.next.baseline = out.next.observed;
  out.next.external_name = seen.observation.external_name;
  out.next.was_unread = paths_of(seen.observation.unread);
  Finding finding;
  finding.rebased = true;
  collect_expected(context, stored, seen, body, out, finding);
  reconcile(setting_of(context, out.next.id), stored, std::move(finding), out);
}

/// Nothing can be said: open drifts stay open, "stale since". The digest is forgotten so that the next record is judged
/// even when it equals the last one.
Judgement unsure(const JudgeContext& context, const StoredResource& stored, const Unsure& sighting) {
  Judgement out = lapse(stored, context.now_ns);
  out.unknown.push_back({"", sighting.reason});
  for (auto& drift : out.next.open) {
    if (!drift.stale_since_ns) drift.stale_since_ns = sighting.at_ns;
    out.next.digest = {};
  }
  return out;
}

/// The stored baseline; an empty object when there is none.
Result<Value> baseline_of(const StoredResource& stored) { return parse(stored.baseline ? *stored.baseline : "{}"); }

/// `finding`: what is known of the baseline already.
Judgement seen_now(const JudgeContext& context, const StoredResource& stored, const Seen& seen, Finding finding = {}) {
  const Result<Value> body = parse(seen.observation.body);
  if (!body) return unsure(context, stored, {"unreadable body: " + body.error().message, seen.observation.observed_ns});
  const Result<Value> baseline = baseline_of(stored);
  if (!baseline) {
    return unsure(context, stored,
                  {"unreadable stored baseline: " + baseline.error().message, seen.observation.observed_ns});
  }
  Judgement out;
  out.next = stored;
  observe(context, seen.observation, *body, out.next);
  if (!context.established) {
    make_baseline(context, stored, seen, *body, out);
    return out;
  }
  if (!stored.baseline) out.next.was_unread = paths_of(seen.observation.unread);
  collect_seen(context, stored, seen, *body, *baseline, out, finding);
  reconcile(setting_of(context, out.next.id), stored, std::move(finding), out);
  return out;
}

Judgement gone_now(const JudgeContext& context, const StoredResource& stored, const Gone& gone) {
  const Result<Value> baseline = baseline_of(stored);
  if (!baseline) {
    return unsure(context, stored, {"unreadable stored baseline: " + baseline.error().message, gone.observed_ns});
  }
  Judgement out;
  out.next = stored;
  out.next.observed.reset();
  out.next.observed_external_name.clear();
  out.next.observed_ns = gone.observed_ns;
  out.next.digest = {};
  out.next.rules_generation = judged_under(context);
  Finding finding;
  finding.gone = true;
  finding.rebased = !context.established;
  if (!context.established) {
    out.next.baseline.reset();
    out.next.external_name.clear();
  } else if (stored.baseline) {
    collect_gone(context, stored, *baseline, out, finding);
  } else {
    collect_absent(context, stored, out, finding);
  }
  reconcile(setting_of(context, out.next.id), stored, std::move(finding), out);
  return out;
}

}  // namespace

std::uint64_t judged_under(const JudgeContext& context) {
  if (!context.established) return 0;
  const Digest schema = digest(
      0, {context.schema->kind(), std::to_string(context.schema->revision()), std::to_string(kNormaliserRevision)});
  const std::uint64_t rules = context.rules->generation ^ schema.low;
  std::uint64_t folded = 0;
  for (const auto& each : context.declared) folded += weight(each.source_uid, each.digest);
  return with_declared(rules == 0 ? 1 : rules, folded);
}

Judgement judge(const JudgeContext& context, const StoredResource& stored, const Sighting& sighting) {
  if (const auto* seen = std::get_if<Seen>(&sighting)) return seen_now(context, stored, *seen);
  if (const auto* gone = std::get_if<Gone>(&sighting)) return gone_now(context, stored, *gone);
  return unsure(context, stored, std::get<Unsure>(sighting));
}

Judgement judge_upgraded(const JudgeContext& context, const StoredResource& stored, const Seen& seen,
                         const std::string& baseline) {
  if (!stored.baseline || !context.established) return seen_now(context, stored, seen);
  auto upgraded = take_upgrade(context, stored, baseline);
  if (!upgraded) return unsure(context, stored, {upgraded.error().message, seen.observation.observed_ns});
  Finding finding;
  finding.upgraded = true;
  finding.replaced = std::move(upgraded->moved);
  return seen_now(context, upgraded->row, seen, std::move(finding));
}

Judgement lapse(const StoredResource& stored, Nanos now_ns) {
  Judgement out;
  out.next = stored;
  for (auto& drift : out.next.open) {
    if (!lapsed(drift, now_ns)) continue;
    const DriftStatus from = drift.status;
    undecide(drift);
    drift.updated_ns = now_ns;
    out.transitions.push_back({drift, from, false, drift.changes});
  }
  return out;
}

}  // namespace driftd::core
