// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/async_mutex.hpp"
#include "core/backend.hpp"
#include "core/ports/enforcing.hpp"
#include "core/ports/registry.hpp"
#include "core/redact.hpp"
#include "engine/cycle_report.hpp"
#include "engine/registry_change.hpp"
#include "engine/sources/newcomers.hpp"
#include "engine/sources/pending_reports.hpp"
#include "engine/sources/reported_bytes.hpp"
#include "engine/sources/source_hub.hpp"

namespace driftd::core {
class Session;
class SessionFactory;
}  // namespace driftd::core

namespace driftd::engine {

class Runner;
struct Context;

/// Returns the canonical backend type of a provider name or alias: `postgresql` is `postgres`.
std::string canonical_type(const std::string& provider);

/// Runs all backends: registers them at start (CREATED, UPDATED, DELETED events) and gives each a Runner. Core thread
/// only.
class Engine final : private SourceHub {
 public:
  /// `factory` must outlive it. `worker_key` digests secrets in the workers, `digest_seed` the records for the index.
  Engine(std::shared_ptr<Context> context, core::SessionFactory& factory, core::RedactionKey worker_key,
         std::uint64_t digest_seed);

  /// Brings the registry in line with `specs`, with one commit for each backend. With `loops` it also starts the
  /// runners; without, cycles run only on demand. Call it once.
  Task<Status> start(std::vector<core::BackendSpec> specs, bool loops);
  /// Stops all runners side by side and returns when they have ended.
  Task<void> stop();
  using Change = RegistryChange;
  /// Makes these changes side by side, so that a hanging cycle of one backend delays no other. Other backends are not
  /// touched. Returns the outcome of each, in order. A backend whose change failed runs on as it was, if the store lets
  /// it; else restart_stopped() starts it again.
  Task<std::vector<Status>> apply(std::vector<Change> changes);
  /// Starts again what a failed change stopped, unless that is durable, whose rest it does. What fails keeps
  /// nothing else stopped; returns the rest's or the store's error. Beside apply(), `except` names its changes.
  Task<Status> restart_stopped(std::set<std::string> except = {});

  /// Returns the drift after the decision. `not_found`: no such drift, or its backend is gone; `conflict`: the decision
  /// does not fit its value or status.
  Task<Result<core::Drift>> decide(std::string drift_id, core::Decision decision);
  Task<Result<core::Drift>> claim(std::string drift_id, core::Claim claim);
  /// Returns what a decision on the drift must name (decision_binding.hpp).
  std::string binding(const core::Drift& drift) const;
  struct BackendRefresh {
    std::string backend;
    CycleReport report;  ///< of its cycle
  };
  /// Runs a cycle of one backend, or of all side by side if the name is empty. Fails with `not_found`, which lists the
  /// known backends.
  Task<Result<std::vector<BackendRefresh>>> refresh(std::string backend, bool full);
  /// Runs full cycles of the backends whose declarations changed, until none is left. The loops do this by themselves.
  Task<Result<std::vector<BackendRefresh>>> settle();
  /// Fails with `not_found` if there is no such backend, resource or attribute.
  Task<Result<std::vector<core::Step>>> explain(std::string backend, core::ResourceId id, std::string path);
  /// Asks the backend's provider for other backends. Fails with `unsupported` if it has no driftd.discover/1.
  Task<Result<core::DiscoverOutcome>> discover(std::string backend);
  std::vector<core::BackendView> view();  ///< of all backends, by name
  /// As core::Enforcing says (engine_enforcement.cpp). The switch itself is in the context.
  Task<Result<core::Enforcement>> enforce(std::string drift_id, std::string digest, bool dry_run, core::Asked asked);
  Task<Status> lift_stop(std::string drift_id, core::Asked asked);
  Task<Status> switch_enforcement(bool on, core::Asked asked);
  core::EnforcementView enforcement();
  /// Returns the registrations, by name.
  std::vector<core::RegisteredBackend> registrations() const;
  core::RegisteredBackend registered_backend(const std::string& name) const;  ///< empty if there is none
  /// Notes where the configuration defines a backend that is the same else. Not an error if there is none.
  void set_defined_at(const std::string& name, const std::string& place);
  /// Returns true if every backend has finished a cycle since the start, from then on for good: a backend that is added
  /// later does not make the agent unready. Else `why` names one that has not.
  bool ready(std::string& why);
  /// Frees parked workers (core::Control::resume).
  Result<std::vector<std::string>> resume(const std::string& name);
  /// Multiplies all intervals by `interval_factor`. While `holds_cycles` is true, nothing is read or committed.
  void set_backpressure(int interval_factor, bool holds_cycles);
  Runner* find(const std::string& name);  ///< null if there is none; valid until the next suspension

 private:
  Task<core::Coverage> apply_discovery(std::string source, core::DiscoverOutcome outcome) override;
  void count(Newcomers& newcomers) const;
  Task<Status> register_discovered(std::string source, core::Discovered found, Newcomers& newcomers);
  /// Unregisters discovered backends that are gone, and holds them for a decision if too many are gone at once.
  Task<Status> count_misses(std::string source, std::string uid, std::set<std::string> named);
  Task<Result<std::set<std::string>>> names_in_question(std::string source);
  /// Returns why the budget does not allow one more backend of this source in that namespace. Empty if it does.
  static std::string no_room(const Newcomers& newcomers, const std::string& place);
  /// Adds to `named` the backends that exist although they cannot be read: single ones, or all of a namespace.
  void add_unreadable(const std::string& uid, const std::vector<core::Diagnostic>& diagnostics,
                      std::set<std::string>& named) const;
  /// Returns true if the backend is registered already and this source is not trusted about it.
  bool belongs_to_other_source(const std::string& source, const core::Discovered& found) const;
  /// Notes where backends are found, for rows of an older store without that note. Only if it is one place.
  void note_places(const std::string& source, const std::vector<core::Discovered>& found);
  Task<Status> remove_discovered(std::string name);  ///< stops its runner and unregisters it

  /// What sources report about other backends (sources/registrations.cpp).
  void declared(const std::string& backend) override;
  bool registered(const std::string& backend) const override { return runners_.contains(backend); }
  std::string declaration_error(const std::string& backend, const std::string& kind) const override;
  ReportOutcome receive_report(RegistrationReport report) override;
  ReportOutcome take_report(RegistrationReport report);  ///< without a discovery
  std::vector<std::string> reported_by(const std::string& source) const override;
  Task<Result<core::ReadOutcome>> ask_registrar(std::string backend) override;
  void release_registrar(const std::string& backend) override;
  void listed(const std::string& source) override;
  void claims_decided(const std::string& backend) override;
  std::string staleness_reason(const std::string& backend) const override;
  /// Makes the sender the registrar if there is none and it is trusted. Returns why the report is rejected; empty:
  /// accepted.
  std::string assign_registrar(const RegistrationReport& report);
  /// Opens a drift that asks whether the source `who`, which is not trusted, may register this backend. Returns why its
  /// report is rejected.
  std::string raise_claim(Runner& target, const core::Registrar& who);
  /// Returns true if the sender of this tombstone is the registrar, or may retract without one.
  bool may_retract(const RegistrationReport& report);
  /// Returns true if the configuration or a person's decision says so.
  bool is_trusted(const std::string& backend, const core::Registrar& who) const;
  Task<Status> restore_registrars();  ///< from the notes in the rows
  Task<Status> restore_registrar(std::shared_ptr<Runner> runner);

  /// Changes of the registry while it runs (engine_registry.cpp).
  Task<void> apply_one(Change change, Status& out, int& left, asio::steady_timer& done);
  Task<Status> change_in_place(std::shared_ptr<Runner> runner, Change change);
  Task<Status> reopen(Change change);
  /// The part of reopen() under the mutex: `runner`, which has stopped, makes way for another one.
  Task<Status> replace(std::shared_ptr<Runner> runner, Change change);
  Task<Status> remove(Change change);
  Task<Status> remove_found_by(std::string uid);  ///< the backends that this source discovered
  Task<void> go_on(std::string name);             ///< starts a runner that was registered while the others run
  void leave_rest(const Status& rest);            ///< after a durable change: if it failed, do_rest() does it later
  Task<Status> do_rest();
  Task<Status> follow_name(std::shared_ptr<Runner> source);
  Task<void> run_again(std::shared_ptr<Runner> runner);
  void forget(const std::string& name);
  void rename(const std::string& former, const std::string& name);
  Runner* discoverer_of(const core::BackendRow& row);
  void set_discoverer(core::BackendRow& row, const core::BackendSpec& spec);
  Task<Status> restore_discovered(core::BackendRow row);  ///< registers it again after a restart

  /// `audit` is part of the commit, if something is to be committed.
  Task<Status> register_backend(core::BackendSpec spec, std::vector<core::BackendRow>& rows,
                                std::vector<core::AuditEntry> audit = {});
  Result<std::shared_ptr<core::Session>> open_session(const core::BackendSpec& spec);
  /// Commits what register_backend() changes of the row `before`, with a CREATED or UPDATED event.
  Task<Status> commit_registration(std::shared_ptr<Runner> runner, std::optional<core::BackendRow> before,
                                   std::vector<core::AuditEntry> audit);
  Result<std::shared_ptr<Runner>> runner_of(const core::Store::Owner& owner) const;
  Task<Status> load_switch();
  Error unknown_backend(const std::string& name) const;  ///< `not_found` with the configured ones

  std::shared_ptr<Context> context_;
  core::SessionFactory& factory_;  ///< opens the workers
  core::RedactionKey worker_key_;
  std::uint64_t digest_seed_;
  std::map<std::string, std::shared_ptr<Runner>> runners_;  ///< by name of the backend
  std::map<std::string, DiscoveredBackend> discovered_;     ///< by name; each has a runner, too
  /// Backend → the registrar whose reports on its registration count.
  std::map<std::string, core::Registrar> registrars_;
  /// Source → backend → claimants that it reported since its last complete list.
  std::map<std::string, std::map<std::string, std::set<core::Registrar>>> current_claims_;
  PendingReports pending_reports_;                                 ///< for backends that are not registered yet
  ReportedBytes reported_bytes_;                                   ///< for registered backends
  std::map<std::string, std::set<std::string>> rejected_sources_;  ///< backend → sources whose report was rejected
  AsyncMutex registry_mutex_;                  ///< locked while discovered backends are registered or removed
  bool loops_ = false, stopping_ = false;      ///< `loops_`: runners start their loops
  bool was_ready_ = false, has_rest_ = false;  ///< `has_rest_`: do_rest() has something to do
  int interval_factor_ = 1;                    ///< the last backpressure, for runners that are added later
  bool holds_cycles_ = false;
};

}  // namespace driftd::engine
