// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/backend.hpp"
#include "core/judge/judge.hpp"
#include "core/scope.hpp"
#include "engine/approved_deletions.hpp"
#include "engine/enforcement_log.hpp"
#include "engine/extras.hpp"
#include "engine/index.hpp"
#include "engine/schema_notes.hpp"
#include "engine/sources/declarations.hpp"
#include "engine/timed_rules.hpp"
#include "engine/unread_notes.hpp"

namespace driftd::core {
class Session;
struct ProviderInfo;
}  // namespace driftd::core

namespace driftd::engine {

struct Context;

/// The state of one backend: its row, rules and index. Judges readings and commits the result. Core thread only; one
/// apply() at a time, under the runner's cycle mutex.
class Ledger {
 public:
  Ledger(std::shared_ptr<Context> context, core::BackendSpec spec, core::BackendRow row);

  /// Fills the index from the store with what is in scope. Call it once, before anything else.
  Task<Status> load();
  const core::Scope& scope() const { return scope_; }
  /// Resources with open drifts that load() found out of scope.
  const std::vector<core::ResourceId>& out_of_scope() const { return out_of_scope_; }
  /// Reloads what sources declare of this backend. Changed resources are judged again in their next reading.
  Task<Status> load_declared();
  /// Returns declared resources of a kind that are not known to exist and were not yet judged as such.
  std::vector<core::ResourceId> declared_absent(const std::string& kind, std::uint32_t run);
  DeclarationSet& declarations() { return declarations_; }
  /// Replaces the rules. Every resource is judged again in its next reading.
  void reload(core::BackendSpec spec);
  /// Takes the policy rules that hold now. If they are other ones, every resource is judged again in its next reading.
  void take_rules(Nanos now_ns);
  void set_info(std::shared_ptr<const core::ProviderInfo> info);

  /// Returns true if this observation changes nothing and needs no judgement. Marks the resource as seen by `run`.
  bool settle(const core::Observation& seen, std::uint32_t run, Moment::Mono asked);
  /// Returns the resources whose next record is judged even if its digest is known. Empty if all must come as a whole.
  std::optional<std::vector<core::ResourceId>> to_read_whole() const;

  struct ApplyResult {
    std::map<core::ResourceId, std::vector<core::UnknownPath>> unknown;
    std::size_t written = 0, transitions = 0;
    std::size_t dropped = 0;    ///< readings older than what is applied; then the page's cursor is dropped
    std::size_t unsettled = 0;  ///< the provider must be asked again; then no cursor is kept, so the next cycle asks
  };
  /// Load → ask the provider → judge (diff pool) → commit (ledger_apply.cpp). Starts over after a decision in between.
  /// `session` answers for the provider; nullptr if it must not be asked.
  Task<Result<ApplyResult>> apply(std::vector<ResourceReading> readings, CommitExtras extras, bool applied_state,
                                  std::uint32_t run, core::Session* session);
  /// Commits a judgement that was made elsewhere (a person's decision, a pseudo-resource), with its audit line and, if
  /// it changes what is accepted, the backend's row. Fails with `conflict` if the resource changed meanwhile.
  Task<Status> commit(core::StoredResource before, core::Judgement judgement, std::string cause,
                      CommitExtras extras = {});
  Task<Status> commit_extras(CommitExtras extras);
  /// Commits only the health, with its event. It may run beside apply(), because it changes nothing else of the row.
  Task<Status> commit_health(core::HealthReport::State health, std::vector<core::EventDraft> events);
  /// Sets expired decisions back to pending, also for resources without a new reading. Returns the resources concerned.
  Task<Result<std::vector<core::ResourceId>>> expire_due_decisions();
  std::optional<Nanos> first_expiry() const;            ///< when the next decision expires
  std::uint64_t unstored() const { return unstored_; }  ///< number of commits that the store refused, without conflicts
  void stop() { stopping_ = true; }                     ///< a page that is still being sealed is abandoned
  /// Returns the resources of a kind that `run` did not see: those present, or with `only_open` those with open drifts
  /// that are not stale yet.
  Task<Result<std::vector<core::ResourceId>>> missing(std::string kind, std::uint32_t run, bool only_open);
  /// Returns those of `ids` with a baseline: somebody accepted them, or they were in the first complete list.
  Task<Result<std::vector<core::ResourceId>>> with_baseline(std::vector<core::ResourceId> ids) const;

  /// Returns absent resources of a kind whose open drifts must be judged again: stale, expiring, or under older rules.
  std::vector<core::ResourceId> gone_to_judge(const std::string& kind);

  /// Returns the row with the approval of these deletions, as `by` saw them in the drift of scope/<kind>.
  core::BackendRow row_accepting(const std::string& kind, const std::string& by, const std::string& seen) const;
  bool has_open_question(const std::string& kind);  ///< true if the drift of scope/<kind> is open
  /// Returns who approved the deletion of this resource, or nullptr if nobody did.
  const std::string* accepted_by(const core::ResourceId& id) const { return deletions_.approved_by(id); }
  /// Returns true if deletions of that kind are approved whose names this process does not know.
  bool accepts_unknown(const std::string& kind) const { return deletions_.names_unknown(kind); }
  /// Passes all missing resources of a kind, so that an approval by digest finds its names.
  Task<Status> find_accepted(std::string kind, std::vector<core::ResourceId> missing);
  /// Opens or updates the drift of scope/<kind> about resources that are held because too many are gone at once. If
  /// `held` is empty, closes it. Returns the number of transitions.
  Task<Result<std::size_t>> update_scope_drift(std::string kind, std::vector<std::string> held,
                                               core::GoneNames shown = core::GoneNames::first);
  /// Returns the row without those approved deletions of `kind` that are finished or whose resource came back. Empty if
  /// there are none.
  Task<Result<std::optional<core::BackendRow>>> without_finished_deletions(std::string kind, std::uint32_t run);
  /// The same for approvals with names; `missing` says whether a resource is still missing.
  std::optional<core::BackendRow> without_finished_deletions(const std::string& kind,
                                                             const std::function<bool(const std::string&)>& missing);

  /// Returns the kinds of which something is stored although the provider does not describe them.
  std::vector<std::string> former_kinds() const;
  /// Deletes what is stored of such a kind. Its open drifts must have ended.
  Task<Status> forget_kind(std::string kind);

  /// Returns the row with notes of the current schemas. Empty if it has them already.
  Task<Result<std::optional<core::BackendRow>>> row_with_schemas() const;

  core::EventContext event_context(std::string cause) const;
  std::vector<std::string> sinks_for(const core::BackendEvent& event) const;
  core::EventDraft draft(core::BackendEvent event) const;
  bool established(const std::string& kind) const;
  /// Returns true if the kind has no baseline and is judged in part (kinds_in_part.hpp, JudgeContext::partial).
  bool partial(const std::string& kind) const;

  /// Resources with a pending drift whose policy is `enforce`.
  const std::set<core::ResourceId>& to_enforce() const { return to_enforce_; }
  EnforcementLog& enforcements() { return enforcements_; }

  const core::BackendSpec& spec() const { return spec_; }
  const TimedRules& rules() const { return rules_; }
  core::BackendRow& row() { return row_; }
  const core::BackendRow& row() const { return row_; }
  Index& index() { return index_; }
  const UnreadNotes& unread() const { return unread_; }
  const core::ProviderInfo* info() const { return info_.get(); }
  std::shared_ptr<const core::ProviderInfo> shared_info() const { return info_; }
  std::shared_ptr<const core::KindSchema> schema(const std::string& kind) const;
  core::JudgeContext judge_context(const std::string& kind, bool applied_state) const;

 private:
  class Page;  // what apply() passes from step to step (ledger_page.hpp)
  struct JudgedResource {
    core::StoredResource before;
    core::Judgement judgement;
  };
  std::uint64_t generation(const std::string& kind) const;
  std::uint64_t generation(const core::ResourceId& id) const;
  Task<Result<core::CommitResult>> store(core::PageCommit page);
  core::PageCommit to_page_commit(std::vector<JudgedResource>& judged, const CommitExtras& extras,
                                  const std::string& cause) const;
  struct Update;  // what the index notes of a resource beside its row (ledger_page.hpp)
  void update_index(const core::StoredResource& next, const Update& update);
  void adopt(const CommitExtras& extras);
  void set_row(core::BackendRow row);
  Task<Status> note_expiries(std::vector<core::ResourceId> open);
  void note_expiry(const core::StoredResource& next);
  std::shared_ptr<Context> context_;
  core::BackendSpec spec_;
  TimedRules rules_;
  core::Scope scope_;
  std::vector<core::ResourceId> out_of_scope_;
  core::BackendRow row_;
  std::shared_ptr<const core::ProviderInfo> info_;
  mutable std::map<std::string, std::uint64_t> generations_;  ///< by kind, computed when first needed
  Former former_;
  std::map<core::ResourceId, Nanos> expiring_;  ///< resources with decisions that expire, and when the first one does
  ApprovedDeletions deletions_;                 ///< approved mass deletions
  std::set<core::ResourceId> restless_;         ///< present; judged again in their next reading, whatever its digest
  std::set<core::ResourceId> gone_open_;        ///< absent resources with open drifts
  std::set<core::ResourceId> to_enforce_;
  EnforcementLog enforcements_;  ///< what commit() adds to it is stored
  UnreadNotes unread_;
  /// Declared by sources about this backend, as one number for each resource.
  std::map<core::ResourceId, std::uint64_t> declared_;
  DeclarationSet declarations_;  ///< declared by this source about other backends
  Index index_;
  std::uint64_t unstored_ = 0;
  bool stopping_ = false;
};

}  // namespace driftd::engine
