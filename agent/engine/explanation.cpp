// SPDX-License-Identifier: Apache-2.0
#include "engine/explanation.hpp"

#include <algorithm>

#include "core/judge/expected.hpp"
#include "core/ports/session.hpp"
#include "engine/context.hpp"
#include "engine/ledger.hpp"

namespace driftd::engine {
namespace {

using Steps = std::vector<core::Step>;

/// Returns which rule applies to a change at `path`.
std::string applied_rule(const core::Rules& rules, const core::KindSchema& schema, const core::ResourceId& id,
                         const core::Path& path) {
  const auto cls = schema.cls(path);
  const auto* ignored = core::find_ignore(rules, id, path, cls);
  if (ignored != nullptr) return "; not judged: ignore rule at " + ignored->where;
  const auto policy = core::choose_policy(rules, id, path, cls, false);
  return "; policy " + std::string(render(policy.action)) + " (" + policy.where + ")";
}

/// Compares an expected value with the body at one path, as the judge does.
void expect(const core::Path& path, const core::Value& wanted, const core::Value& body, const core::KindSchema& schema,
            const std::string& who, core::DiffOptions options, Steps& out) {
  Steps steps;
  options.trace = &steps;
  const core::Difference found = core::diff_expected({{path, wanted}}, body, schema, std::move(options));
  for (const auto& unknown : found.unknown) {
    const bool traced =
        std::any_of(steps.begin(), steps.end(), [&](const auto& step) { return step.path == unknown.path; });
    if (!traced) steps.push_back({unknown.path, "", "", "", "", "", "unknown", unknown.reason});
  }
  for (auto& step : steps) {
    step.reason = who + (step.reason.empty() ? "" : "; " + step.reason);
    out.push_back(std::move(step));
  }
}

/// Everything that an explanation needs.
struct Question {
  core::ResourceId id;
  core::StoredResource row;
  std::vector<core::Declaration> declarations;
  std::shared_ptr<const core::KindSchema> schema;
  std::shared_ptr<const core::Rules> rules;
  std::shared_ptr<const core::RedactionKeys> keys;
  UnreadNotes::Paths unread;

  core::DiffOptions options() const {
    core::DiffOptions out;
    out.id = id;
    out.keys = keys.get();
    out.unread = unread.paths;
    return out;
  }
};

/// The steps, and the changes against the baseline, of which the provider may demote some.
struct Answer {
  Steps steps;
  std::vector<core::Change> changes;
};

Answer against_baseline(const Question& about, const core::Value& before, const core::Value& after) {
  Answer answer;
  Steps& out = answer.steps;
  core::DiffOptions options = about.options();
  options.old_revision = about.row.schema_revision;
  options.was_unread = about.row.was_unread;
  options.trace = &out;
  answer.changes = core::diff(before, after, *about.schema, options).changes;
  for (auto& step : out) {
    if (step.verdict == "drift" && step.new_raw.empty() && !about.unread.gap.empty()) {
      step.verdict = "unknown";
      step.reason = about.unread.gap;
    }
    const auto where = core::Path::parse(step.path);
    if (where && step.verdict == "drift") step.reason += applied_rule(*about.rules, *about.schema, about.id, *where);
  }
  return answer;
}

core::Step came_or_went(const core::StoredResource& row) {
  core::Step out;
  out.path = std::string(core::kIdentityPath);
  out.verdict = "drift";
  out.reason = row.baseline ? "it is gone: nothing of the accepted body is there"
                            : "it has no accepted baseline: it came after the first complete list";
  return out;
}

/// Runs on the diff pool: the digest of an expected value in clear text may take 50 ms.
Result<Answer> answer(const Question& about) {
  DRIFTD_TRY(const auto before, core::parse(about.row.baseline.value_or("{}")));
  DRIFTD_TRY(const auto after, core::parse(about.row.observed.value_or("{}")));
  Answer found;
  Steps& out = found.steps;
  if (about.row.baseline.has_value() != about.row.observed.has_value()) out.push_back(came_or_went(about.row));
  if (about.row.baseline && about.row.observed) found = against_baseline(about, before, after);
  for (const auto& expectation : about.rules->expect) {
    if (!expectation.match.resource(about.id)) continue;
    for (const auto& [at, value] : expectation.attributes) {
      expect(at, value, after, *about.schema, "expected at " + expectation.where, about.options(), out);
    }
  }
  for (const auto& declaration : about.declarations) {
    const auto body = core::parse(declaration.body);
    if (!body) continue;
    for (const auto& [at, value] : core::expand_declared(*body, after, *about.schema)) {
      expect(at, value, after, *about.schema, core::describe(declaration), about.options(), out);
    }
  }
  return found;
}

/// Adds what could not be read and is in neither body. What the system or the settings do not offer is shown only to
/// somebody who asks for it: there may be hundreds.
void add_unread(const UnreadNotes::Paths& unread, const std::string& path, Steps& out) {
  for (const auto& one : unread.paths) {
    const bool wanted = path.empty() ? one.code != Code::unsupported : core::related(one.path, path);
    const bool shown =
        std::any_of(out.begin(), out.end(), [&](const auto& step) { return core::related(step.path, one.path); });
    if (wanted && !shown) out.push_back({one.path, "", "", "", "", "", "unknown", one.reason});
  }
}

/// Asks the provider about the changes, as the judge does, and writes its verdicts into the steps. It may not demote a
/// credential.
Task<void> add_demotions(core::Session& session, core::ResourceId id, Answer& answer) {
  const auto demotions = co_await session.demote(std::move(id), answer.changes);
  // The steps against the baseline come first.
  const auto step_of = [&](const core::Change& change) {
    return std::find_if(answer.steps.begin(), answer.steps.end(),
                        [&](const auto& step) { return step.path == change.path && step.verdict == "drift"; });
  };
  if (!demotions) {
    for (const auto& change : answer.changes) {
      if (const auto step = step_of(change); step != answer.steps.end())
        step->reason += "; the provider's diff failed: " + demotions.error().message;
    }
    co_return;
  }
  for (const auto& demotion : *demotions) {
    if (demotion.index >= answer.changes.size()) continue;
    const core::Change& change = answer.changes[demotion.index];
    const auto step = step_of(change);
    if (step == answer.steps.end() || change.cls == core::ChangeClass::credential) continue;
    step->verdict = demotion.unsettled ? "unknown" : "equal";
    step->reason = "the provider's diff: " + demotion.reason;
  }
}

}  // namespace

Task<Result<Steps>> explain(std::shared_ptr<Context> context, Ledger& ledger, core::Session& session,
                            core::ResourceId id, std::string path) {
  std::vector<core::ResourceId> ids(1, id);
  DRIFTD_CO_TRY(auto rows, co_await context->store.load(ledger.row().uid, ids));
  DRIFTD_CO_TRY(auto declarations, co_await context->store.declarations(ledger.row().name, std::move(ids)));
  if (rows.front().revision == 0 && declarations.empty()) {
    co_return fail(Code::not_found, "no resource " + core::render(id) + " in backend " + ledger.spec().name);
  }
  Question about{id,
                 std::move(rows.front()),
                 std::move(declarations),
                 ledger.schema(id.kind),
                 ledger.rules().held(),
                 context->keys,
                 ledger.unread().of(id, ledger.index().find(id))};
  const UnreadNotes::Paths unread = about.unread;
  auto work = [about = std::move(about)] { return answer(about); };
  DRIFTD_CO_TRY(Answer found, co_await run_on(context->diff, std::move(work)));
  const bool asks = ledger.info() != nullptr && ledger.info()->has_diff && !found.changes.empty();
  if (asks) co_await add_demotions(session, id, found);
  Steps steps = std::move(found.steps);
  if (!path.empty()) std::erase_if(steps, [&](const auto& step) { return step.path != path; });
  add_unread(unread, path, steps);
  if (!path.empty() && steps.empty()) {
    co_return fail(Code::not_found, core::render(id) + " has no attribute '" + path + "'");
  }
  co_return steps;
}

}  // namespace driftd::engine
