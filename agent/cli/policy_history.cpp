// SPDX-License-Identifier: Apache-2.0
#include "cli/policy_history.hpp"

#include <fstream>
#include <sstream>

#include "base/instant.hpp"
#include "cli/exit_codes.hpp"
#include "cli/fields.hpp"

namespace driftd::cli {
namespace {

constexpr const char* kMostRows = "10000";  // of one answer of the agent

Result<core::Drift> parse_drift(const core::Value& row) {
  core::Drift out;
  out.id = text(row, "id");
  out.resource.kind = text(row, "kind");
  const std::string resource = text(row, "resource");
  if (out.id.empty() || out.resource.kind.empty() || !resource.starts_with(out.resource.kind + "/")) {
    return fail(Code::invalid, "a drift has no id, kind or resource");
  }
  out.resource.id = resource.substr(out.resource.kind.size() + 1);
  DRIFTD_TRY(out.cls, core::parse_class(text(row, "class")));
  DRIFTD_TRY(out.against, core::parse_against(text(row, "against")));
  DRIFTD_TRY(out.action, core::parse_action(text(row, "policy")));
  DRIFTD_TRY(out.operation, core::parse_operation(text(row, "operation")));
  out.opened_ns = parse_nanos(text(row, "opened")).value_or(0);
  for (const auto& change : list(row, "changes")) {
    core::Change one;
    one.path = text(change, "path");
    DRIFTD_TRY(one.cls, core::parse_class(text(change, "class")));
    one.redacted = flag(change, "redacted");
    out.changes.push_back(std::move(one));
  }
  return out;
}

/// Adds the drifts of one answer. Returns the error of the first that is none.
Status add(const core::Value& answer, History& to) {
  for (const auto& row : list(answer, "drifts")) {
    auto drift = parse_drift(row);
    if (!drift) return fail(drift.error().code, "drift " + text(row, "id") + ": " + drift.error().message);
    if (number(row, "changes_total") > 0) {
      to.notes.push_back("drift " + drift->id + " has " + std::to_string(number(row, "changes_total")) +
                         " attributes, of which the first " + std::to_string(drift->changes.size()) + " are tried");
    }
    to.drifts.push_back({text(row, "backend"), std::move(*drift)});
  }
  return {};
}

void note_missing(const core::Value& answer, const std::string& whose, History& to) {
  const auto missing = number(answer, "total") - static_cast<std::int64_t>(list(answer, "drifts").size());
  if (flag(answer, "truncated") && missing > 0)
    to.notes.push_back(std::to_string(missing) + " more drifts of " + whose + " are not tried");
}

}  // namespace

Outcome<History> history_of_agent(const Client& client, const std::vector<std::string>& backends) {
  History out;
  for (const auto& backend : backends) {
    const auto answer = client.get("/v1/drifts", {{"backend", backend}, {"all", "true"}, {"limit", kMostRows}});
    if (!answer) {
      if (answer.error().exit == kUnreachable) return tl::unexpected(answer.error());
      out.notes.push_back("backend " + backend + " has no history: " + answer.error().message);
      continue;
    }
    if (const Status added = add(*answer, out); !added) {
      return tl::unexpected(Failure{kFinding, "the agent's answer is not understood: " + added.error().message});
    }
    note_missing(*answer, backend, out);
  }
  return out;
}

Outcome<History> history_of_file(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream content;
  if (!in || !(content << in.rdbuf())) {
    return tl::unexpected(Failure{kUsage, file + ": cannot be read; `driftd drifts --all -o json` prints a history"});
  }
  const auto parsed = core::parse(content.str());
  if (!parsed || parsed->find("drifts") == nullptr) {
    return tl::unexpected(
        Failure{kUsage, file + ": no history: " + (parsed ? "it has no member `drifts`" : parsed.error().message) +
                            "; expected what `driftd drifts --all -o json` prints"});
  }
  History out;
  if (const Status added = add(*parsed, out); !added) {
    return tl::unexpected(Failure{kUsage, file + ": " + added.error().message});
  }
  note_missing(*parsed, file, out);
  return out;
}

}  // namespace driftd::cli
