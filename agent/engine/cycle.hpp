// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/ports/session.hpp"
#include "engine/cycle_report.hpp"
#include "engine/extras.hpp"
#include "engine/sources/foreign_kinds.hpp"

namespace driftd::engine {

class Ledger;
struct Context;

/// Keeps the last reading of each resource. The order of those that stay is unchanged.
std::vector<ResourceReading> last_of_each(std::vector<ResourceReading> all);

/// Renders a diagnostic with its code and, if one is named, the missing right.
std::string sentence(const core::Diagnostic& d);

/// One refresh → diff → judge → commit pass of one backend. Lives for one run, on the core thread, while the runner's
/// cycle mutex is locked.
class Cycle {
 public:
  Cycle(std::shared_ptr<Context> context, Ledger& ledger, core::Session& session, std::uint32_t run);

  /// Runs the cycle; an empty `cursor` makes it a full run. `digests`: records that were sent before may come as their
  /// digests.
  Task<CycleReport> run(std::string cursor, std::chrono::milliseconds deadline, bool digests);
  /// True if the run ended early because a record came as a digest that is not the last one of its resource, or must be
  /// judged again (under other rules). The same run without `digests` reads it.
  bool needs_records() const { return needs_records_; }
  /// Judges a page of a watch. Tombstones are confirmed by a read, and kinds are not completed. `before` is when the
  /// watch gave its previous page, or began; `received` is when it gave this one.
  Task<Status> watch_page(core::RecordPage page, Moment before, Moment received);
  /// Retracts the registrations of this source that the run did not name. Call it only after a run in which the
  /// provider listed all registrations.
  void retract_unmentioned();
  /// True if no read could confirm that missing resources are gone. Then the next cycle must read everything, whatever
  /// its cursor says.
  bool unconfirmed() const { return unconfirmed_; }
  /// True if everything must be listed again, whatever a cursor says: a read found a resource that the list lacks, or
  /// did not answer about one, or a page of a watch made a resource unreadable, or readable again (the coverage is that
  /// of the last list).
  bool must_list_again() const { return list_again_; }
  /// True if new resources were left out because the budget is used up. Known resources were judged, so a cursor may be
  /// stored.
  bool left_out() const { return left_out_; }
  /// Number of records that were left out: those read before what is applied already, and those over a budget.
  std::uint64_t dropped() const { return dropped_ + foreign_.left_out() + declarations_left_out_; }

 private:
  using Kind = KindReport;
  struct PageReport {
    core::Observation record;
    Kind* kind;  ///< in `foreign_`; faults are added to it
  };

  /// Takes one page of a refresh: what other backends are concerned with is put aside, the rest is judged and
  /// committed.
  Task<Status> process_page(core::RecordPage page);
  /// Adds a record that this source sent for another backend to the commit of the page.
  void add_declaration(core::Observation record, CommitExtras& extras);
  /// Ends what a complete list of declarations for one kind of another backend did not name.
  void complete_declared(const core::Mark& mark, CommitExtras& extras);
  void leave_out_declaration(Kind& kind);  ///< it is over the source's budget
  void pass_on_reports();                  ///< to the hub, after the page was committed
  void report_registration(core::Observation record, Kind& kind);
  core::Observation retraction(const std::string& backend) const;  ///< a tombstone of the backend's registration
  Task<Status> withdraw_unmentioned();
  Kind* foreign(const std::string& backend, const std::string& kind);  ///< null if the run names too many kinds
  /// Adds each diagnostic to the reasons of the kind that it is about, or of every kind.
  void note_diagnostics(const std::vector<core::Diagnostic>& diagnostics);
  /// Settles unchanged records, leaves out new ones over the budget, judges the rest and commits it with `extras`.
  Task<Status> judge_records(std::vector<ResourceReading> records, CommitExtras extras);
  bool is_unknown(const core::ResourceId& id) const;  ///< part of it could not be judged
  std::vector<std::pair<core::ResourceId, bool>> unknown_now(const std::vector<ResourceReading>& readings) const;
  std::vector<ResourceReading> to_readings(std::vector<core::Observation> records,
                                           const Moment& began) const;  ///< with the time of their request
  /// Asks the provider about resources that a complete list lacks, and judges as gone what it does not find either.
  Task<Status> confirm_missing();
  Task<Status> confirm_declared_absent(std::string kind);
  Task<Status> confirm(std::vector<core::ResourceId> ids, Kind* kind);
  /// Notes whether the read of `ids` disputes the list that lacks them, with a reason for those without an answer.
  void note_dispute(const std::vector<core::ResourceId>& ids, const core::ReadOutcome& answer, Kind* kind);
  /// Returns false, with a reason in `kind`, if a system was accepted and a probe does not find it now.
  Task<bool> is_the_same_system(Kind* kind);
  /// `sent` is when the read that confirmed it was requested.
  Task<Status> judge_gone(std::vector<core::ResourceId> ids, Moment sent);
  Task<Status> hold_or_confirm_missing(std::string kind, bool some_missing);
  struct Missing {
    std::vector<core::ResourceId> gone;  ///< a read must confirm that they are gone
    std::vector<std::string> held;       ///< ids that wait for a person's decision
  };
  /// Decides what of the resources that are missing from a complete list must wait until a person decides. `present` is
  /// how many of the kind are known.
  Task<Result<Missing>> hold_mass_deletion(std::string kind, std::size_t present, std::vector<core::ResourceId> gone);
  /// Judges absent resources again whose open drifts are stale, expiring or under older rules.
  Task<Status> rejudge_gone(std::string kind);
  /// Commits which kinds were listed completely for the first time: these lists are their baselines. Notes those that
  /// are judged in part until then.
  Task<Status> establish(bool listed);
  /// Marks open drifts of resources that an incomplete list did not show. Their values are unknown now.
  Task<Status> mark_stale();
  /// Notes serial and lineage of the source's state in the row, once every kind was listed completely.
  Task<Status> save_serial();
  /// Returns true if the record is of a newer serial of the same lineage than the last complete cycle: somebody
  /// applied.
  bool applied_state(const core::Observation& observation);
  /// Gives every kind that is not complete its reasons, after the last page.
  void close_kinds(const Status& status);
  CycleReport report(Status status) const;  ///< of what happened until now

  std::shared_ptr<Context> context_;
  Ledger& ledger_;
  core::Session& session_;
  std::uint32_t run_;                  ///< number of the cycle; the index notes it with each resource that it saw
  Moment began_;                       ///< before anything was asked
  std::map<std::string, Kind> kinds_;  ///< of this backend
  ForeignKinds foreign_;               ///< what this source sent for other backends
  /// Reports of the page in progress on registrations of other backends. They are passed on when it is committed.
  std::vector<PageReport> page_reports_;
  /// Backends for which a registration report was accepted, or rejected.
  std::set<std::string> reported_backends_, rejected_backends_;
  std::vector<std::string> general_;  ///< reasons that concern every kind
  std::uint64_t received_ = 0, settled_ = 0, transitions_ = 0, dropped_ = 0, unsettled_ = 0, declarations_left_out_ = 0;
  bool applied_ = false, unconfirmed_ = false, list_again_ = false, left_out_ = false, needs_records_ = false,
       in_watch_ = false;
  std::string serial_, lineage_;  ///< metadata of the records; empty: the provider has none
};

}  // namespace driftd::engine
