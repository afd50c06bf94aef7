// SPDX-License-Identifier: Apache-2.0
#include "judged.hpp"

#include "core/judge/judge.hpp"
#include "core/judge/rules.hpp"

namespace driftd::test {
namespace {

core::Present reading_of(const sdk::Record& record, Nanos at) {
  core::Present out;
  out.observation.id = {record.kind, "judged"};
  out.observation.body = record.body;
  out.observation.version = record.version;
  out.observation.external_name = "one";
  out.observation.schema_revision = record.schema_revision;
  out.observation.observed_ns = at;
  for (const auto& each : record.unread) {
    out.observation.unread.push_back({each.path, Code::unsupported, each.reason});
  }
  return out;
}

}  // namespace

Verdict judged(const std::shared_ptr<const core::KindSchema>& schema, const sdk::Record& before,
               const sdk::Record& after) {
  core::JudgeContext context;
  context.schema = schema;
  context.rules = std::make_shared<const core::Rules>();
  context.backend_uid = "b";
  context.now_ns = 1'000'000'000;
  core::StoredResource row;
  row.id = {before.kind, "judged"};
  row = core::judge(context, row, reading_of(before, context.now_ns)).next;
  row.revision = 1;
  context.established = true;
  context.now_ns = 2'000'000'000;
  const auto judgement = core::judge(context, row, reading_of(after, context.now_ns));
  Verdict out;
  for (const auto& transition : judgement.transitions) {
    for (const auto& change : transition.changes) out.changes.push_back(change.path);
  }
  for (const auto& each : judgement.unknown) out.unknown.push_back(each.path + ": " + each.reason);
  return out;
}

}  // namespace driftd::test
