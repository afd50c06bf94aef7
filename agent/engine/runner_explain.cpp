// SPDX-License-Identifier: Apache-2.0
// `driftd explain`: why an attribute is, or is not, a drift; against the baseline, and against what is expected of it.
#include <algorithm>

#include "core/expected.hpp"
#include "engine/runner.hpp"

namespace driftd::engine {
namespace {

using Steps = std::vector<core::Step>;

/// What the rules make of a change at `path`.
std::string rule_of(const core::Rules& rules, const core::KindSchema& schema, const core::ResourceId& id,
                    const core::Path& path) {
  const auto cls = schema.cls(path);
  const auto* ignored = core::find_ignore(rules, id, path, cls);
  if (ignored != nullptr) return "; not judged: ignore rule at " + ignored->where;
  const auto policy = core::choose_policy(rules, id, path, cls, false);
  return "; policy " + std::string(render(policy.action)) + " (" + policy.where + ")";
}

/// Compares at one path what somebody wants with what is there, as the judge does.
void expect(const core::Path& path, const core::Value& wanted, const core::Value& body, const core::KindSchema& schema,
            const std::string& who, core::DiffOptions options, Steps& out) {
  Steps steps;
  options.trace = &steps;
  const core::Difference found = core::diff_expected({{path, wanted}}, body, schema, std::move(options));
  for (const auto& unknown : found.unknown) {
    const bool traced = std::any_of(steps.begin(), steps.end(), [&](const auto& step) { return step.path == unknown.path; });
    if (!traced) steps.push_back({unknown.path, "", "", "", "", "", "unknown", unknown.reason});
  }
  for (auto& step : steps) {
    step.reason = who + (step.reason.empty() ? "" : "; " + step.reason);
    out.push_back(std::move(step));
  }
}

}  // namespace

Task<Result<Steps>> Runner::explain(core::ResourceId id, std::string path) {
  const auto self = shared_from_this();
  std::vector<core::ResourceId> ids(1, id);
  DRIFTD_CO_TRY(auto rows, co_await context_->store.load(ledger_.row().uid, ids));
  DRIFTD_CO_TRY(const auto declarations, co_await context_->store.declarations(ledger_.row().name, std::move(ids)));
  const core::StoredResource& row = rows.front();
  if (row.revision == 0 && declarations.empty()) {
    co_return fail(Code::not_found, "no resource " + core::render(id) + " in backend " + ledger_.spec().name);
  }
  DRIFTD_CO_TRY(const auto before, core::parse(row.baseline.value_or("{}")));
  DRIFTD_CO_TRY(const auto after, core::parse(row.observed.value_or("{}")));
  const auto schema = ledger_.schema(id.kind);
  const core::Rules& rules = *ledger_.spec().rules;
  Steps steps;
  if (row.baseline.has_value() != row.observed.has_value()) {
    core::Step whole;
    whole.path = std::string(core::kIdentityPath);
    whole.verdict = "drift";
    whole.reason = row.baseline ? "it is gone: nothing of the accepted body is there" : "it has no accepted baseline: it came after the first complete list";
    steps.push_back(std::move(whole));
  }
  core::DiffOptions with_keys;
  with_keys.id = id;
  with_keys.keys = context_->keys.get();
  if (row.baseline && row.observed) {
    core::DiffOptions options = with_keys;
    options.old_revision = row.schema_revision;
    options.was_unread = row.was_unread;
    options.trace = &steps;
    (void)core::diff(before, after, *schema, options);
    for (auto& step : steps) {
      const auto where = core::Path::parse(step.path);
      if (where && step.verdict == "drift") step.reason += rule_of(rules, *schema, id, *where);
    }
  }
  for (const auto& expectation : rules.expect) {
    if (!expectation.match.resource(id)) continue;
    for (const auto& [at, value] : expectation.where_all) {
      expect(at, value, after, *schema, "expected at " + expectation.where, with_keys, steps);
    }
  }
  for (const auto& declaration : declarations) {
    const auto body = core::parse(declaration.body);
    if (!body) continue;
    for (const auto& [at, value] : core::declared_values(*body)) {
      if (!value.is_null()) expect(at, value, after, *schema, core::words_of(declaration), with_keys, steps);
    }
  }
  if (!path.empty()) std::erase_if(steps, [&](const auto& step) { return step.path != path; });
  if (!path.empty() && steps.empty()) {
    co_return fail(Code::not_found, core::render(id) + " has no attribute '" + path + "'");
  }
  co_return steps;
}

}  // namespace driftd::engine
