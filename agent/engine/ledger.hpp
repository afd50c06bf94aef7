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
#include "core/ports/session.hpp"
#include "core/scope.hpp"
#include "engine/context.hpp"
#include "engine/deletions.hpp"
#include "engine/extras.hpp"
#include "engine/index.hpp"
#include "engine/schema_notes.hpp"
#include "engine/sources/declarations.hpp"

namespace driftd::engine {

/// The agent's book of one backend: its row, its rules, its index; judges readings and commits the outcome. Core
/// thread only, one apply() at a time (AsyncMutex).
class Ledger {
 public:
  Ledger(std::shared_ptr<Context> context, core::BackendSpec spec, core::BackendRow row);

  /// Fills the index from the store, with what is in scope; once, before anything else.
  Task<Status> load();
  const core::Scope& scope() const { return scope_; }
  /// What load() found out of scope with open drifts.
  const std::vector<core::ResourceId>& out_of_scope() const { return out_of_scope_; }
  /// What sources declare of this backend, as committed now; what moved is judged again at its next sight.
  Task<Status> load_declared();
  /// Declared resources of a kind that are not known to be there, and were not judged under these declarations yet.
  std::vector<core::ResourceId> declared_absent(const std::string& kind, std::uint32_t run);
  DeclarationSet& declarations() { return declarations_; }
  /// New rules: everything is judged again at its next sight.
  void reload(core::BackendSpec spec);
  void set_info(std::shared_ptr<const core::ProviderInfo> info);

  /// True, and marked as seen by `run`, when this observation says nothing new and needs no new judgement.
  bool settle(const core::Observation& seen, std::uint32_t run, Moment::Mono asked);

  struct ApplyResult {
    std::map<core::ResourceId, std::vector<core::UnknownPath>> unknown;
    std::size_t written = 0, transitions = 0;
    std::size_t dropped = 0;  ///< what was asked for later is applied already; then no cursor of the page is kept
    /// what the provider must be asked again; then no cursor stands, so that the next cycle does
    std::size_t unsettled = 0;
  };
  /// Load → judge (diff pool) → commit; judges again when a decision came in between. `session` answers demotions.
  Task<Result<ApplyResult>> apply(std::vector<ResourceReading> readings, CommitExtras extras, bool applied_state,
                                  std::uint32_t run, core::Session* session);
  /// Commits a judgement that was made elsewhere (a person's decision, a pseudo-resource), with its audit line and,
  /// when it changes what is accepted, the backend's row. `conflict`: the resource moved.
  Task<Status> commit(core::StoredResource before, core::Judgement judgement, std::string cause,
                      CommitExtras extras = {});
  Task<Status> commit_extras(CommitExtras extras);
  /// Health alone, with its event. At any time, also beside an apply(): it touches nothing else of the row.
  Task<Status> commit_health(core::HealthReport::State health, std::vector<core::EventDraft> events);
  /// Decisions whose time has run out fall back to pending, also where nothing is seen anew. Returns what they were
  /// about.
  Task<Result<std::vector<core::ResourceId>>> expire_due_decisions();
  std::optional<Nanos> first_expiry() const;            ///< when the first of them does
  std::uint64_t unstored() const { return unstored_; }  ///< commits that the store refused; not conflicts
  void stop() { stopping_ = true; }                     ///< a page that is still being sealed is given up
  /// Identities of a kind that `run` did not see: those present, or those with open drifts that are not stale yet.
  Task<Result<std::vector<core::ResourceId>>> missing(std::string kind, std::uint32_t run, bool only_open);
  /// Those of them that somebody accepted, or the first complete list had.
  Task<Result<std::vector<core::ResourceId>>> with_baseline(std::vector<core::ResourceId> ids) const;

  /// Absent resources of a kind whose open drifts must be judged again: stale, running out, or under older rules.
  std::vector<core::ResourceId> gone_to_judge(const std::string& kind);

  /// The row that accepts these deletions, as `by` saw them in the drift of scope/<kind>.
  core::BackendRow row_accepting(const std::string& kind, const std::string& by, const std::string& seen) const;
  bool has_open_question(const std::string& kind);  ///< the drift of scope/<kind> is open
  /// Who accepted the deletion of this resource; nullptr: nobody.
  const std::string* accepted_by(const core::ResourceId& id) const { return deletions_.approved_by(id); }
  /// Somebody accepted deletions of that kind whose names this process does not know: it did not ask about them.
  bool accepts_unknown(const std::string& kind) const { return deletions_.names_unknown(kind); }
  Task<Status> find_accepted(std::string kind, std::vector<core::ResourceId> missing);  ///< `missing`: all of that kind
  /// Asks, by the drift of scope/<kind>, about what is held because too much went at once; with no names no more. →
  /// transitions
  Task<Result<std::size_t>> update_scope_drift(std::string kind, std::vector<std::string> held,
                                               core::GoneNames shown = core::GoneNames::first);
  /// The row without the accepted deletions of `kind` that are done or came back; nothing when none is.
  Task<Result<std::optional<core::BackendRow>>> without_finished_deletions(std::string kind, std::uint32_t run);
  /// `missing`: whether what was accepted, with its names, is still there to be deleted.
  std::optional<core::BackendRow> without_finished_deletions(const std::string& kind,
                                                             const std::function<bool(const std::string&)>& missing);

  /// The row with the current schemas noted (they are `former` to later revisions); nothing when they already are.
  Task<Result<std::optional<core::BackendRow>>> row_with_schemas() const;

  core::EventContext event_context(std::string cause) const;
  std::vector<std::string> sinks_for(const core::BackendEvent& event) const;
  core::EventDraft draft(core::BackendEvent event) const;
  bool established(const std::string& kind) const;

  const core::BackendSpec& spec() const { return spec_; }
  core::BackendRow& row() { return row_; }
  const core::BackendRow& row() const { return row_; }
  Index& index() { return index_; }
  const core::ProviderInfo* info() const { return info_.get(); }
  std::shared_ptr<const core::ProviderInfo> shared_info() const { return info_; }
  std::shared_ptr<const core::KindSchema> schema(const std::string& kind) const;
  core::JudgeContext judge_context(const std::string& kind, bool applied_state) const;

 private:
  struct JudgedResource {
    core::StoredResource before;
    core::Judgement judgement;
  };
  std::uint64_t generation(const std::string& kind) const;
  std::uint64_t generation(const core::ResourceId& id) const;
  /// Puts what sources declare of `ids` into their contexts.
  Task<Status> add_declared(const std::vector<core::ResourceId>& ids, std::vector<core::JudgeContext>& contexts) const;
  Task<Status> ask_demotions(const std::vector<core::StoredResource>& stored, std::vector<ResourceReading>& readings,
                             core::Session* session);
  /// Baselines of older schema revisions in today's form, where the provider can convert them; what fails is unknown.
  Task<Status> ask_upgrades(const std::vector<core::StoredResource>& stored, std::vector<ResourceReading>& readings,
                            core::Session* session);
  /// Agent side of semantics 19, in place, on the diff pool: under a slow layer each new digest takes 50 ms.
  Task<Status> seal(std::vector<ResourceReading>& readings, const std::vector<bool>& old, CommitExtras& extras) const;
  Task<Result<core::CommitResult>> store(core::PageCommit page);
  core::PageCommit to_page_commit(std::vector<JudgedResource>& judged, const CommitExtras& extras,
                                  const std::string& cause) const;
  void update_index(const core::StoredResource& next, std::uint32_t run, bool unknown, std::uint64_t asked);
  bool outdated(const ResourceReading& reading);
  void adopt(const CommitExtras& extras);
  void set_row(core::BackendRow row);
  Task<Status> note_expiries(std::vector<core::ResourceId> open);
  void note_expiry(const core::StoredResource& next);
  std::shared_ptr<Context> context_;
  core::BackendSpec spec_;
  core::Scope scope_;
  std::vector<core::ResourceId> out_of_scope_;
  core::BackendRow row_;
  std::shared_ptr<const core::ProviderInfo> info_;
  mutable std::map<std::string, std::uint64_t> generations_;  ///< per kind: core::generation_under, made when asked for
  Former former_;
  std::map<core::ResourceId, Nanos> expiring_;  ///< resources with decisions that run out, and when the first does
  Deletions deletions_;                         ///< those of very many that somebody accepted
  std::set<core::ResourceId> gone_open_;        ///< not there, with open drifts
  std::map<core::ResourceId, std::uint64_t> declared_;  ///< by sources, of this backend: sums of core::generation_term
  DeclarationSet declarations_;                         ///< by this source, of other backends
  Index index_;
  std::uint64_t unstored_ = 0;
  bool stopping_ = false;
};

}  // namespace driftd::engine
