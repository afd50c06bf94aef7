// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/async_mutex.hpp"
#include "core/ports/control.hpp"
#include "engine/cycle_history.hpp"
#include "engine/cycle_plan.hpp"
#include "engine/enforcer.hpp"
#include "engine/health_monitor.hpp"
#include "engine/identity_check.hpp"
#include "engine/ledger.hpp"
#include "engine/sources/backend_discovery.hpp"
#include "engine/sources/backend_registration.hpp"
#include "engine/watch_loop.hpp"

namespace driftd::engine {

struct CycleReport;

/// Runs one backend: it owns the parts that do the work (its ledger, plan, health, watch, identity and registration)
/// and sees to it that only one of them changes the ledger at a time, under one AsyncMutex. Core thread only. Its three
/// loops keep it alive until stop() ends them.
class Runner : public std::enable_shared_from_this<Runner> {
 public:
  /// Starts nothing. `session` is the backend's, which the runner stops.
  Runner(std::shared_ptr<Context> context, core::BackendSpec spec, core::BackendRow row,
         std::shared_ptr<RegistrationSession> session);

  /// Reads the backend's state from the store. Call it once, before start().
  Task<Status> load();
  void start();  ///< its three loops
  /// Returns when all loops and a refresh on demand have ended.
  Task<void> stop();

  /// Runs a cycle as soon as the one in progress has ended, and returns its report.
  Task<CycleReport> refresh(bool full);
  /// Starts the next cycle at once, because the backend may have changed.
  void hint() { plan_.hint(); }
  /// Applies a spec that needs no other session: rules, interval, registration. An UPDATED event and `audit` are part
  /// of the commit. The next cycle judges every known resource again. After an error the former spec stays.
  Task<Status> reload(core::BackendSpec spec, std::vector<core::AuditEntry> audit = {});
  /// As a source: what defines a backend may have changed, so it discovers in a moment.
  void ask_discovery() {
    discovery_.ask();
    plan_.wake();
  }
  /// Call it when declarations about this backend changed: everything is read again at once.
  void declared();
  /// True until a cycle has judged the backend under its current declarations.
  bool unsettled() const { return declarations_changed_; }
  /// True while a cycle, or anything else under the cycle mutex, is running.
  bool busy() const { return cycle_mutex_.locked(); }

  /// Brings the drift of `claim/<backend>` in line with the claims on its registration.
  Task<Status> update_claim_drift();
  /// Gives up the registrar of this backend's registration, and retires the drifts of it.
  Task<Status> drop_registrar(std::string why);
  /// Takes a report on this backend's registration. Returns true if the caller must call judge_report(), which judges
  /// the newest report.
  bool receive_report(RegistrationReport report, const std::string& registrar_uid);
  Task<Status> judge_report();
  /// Updates a discovered backend, with an UPDATED event if its registration changed.
  Task<Status> reregister(core::BackendSpec spec);

  void set_stretch(int factor) { plan_.schedule().set_stretch(factor); }
  /// While `held` is true, nothing is read or committed (backpressure).
  void hold(bool held) { plan_.hold(held); }

  /// Applies a person's decision to a drift of this backend.
  Task<Result<core::Drift>> decide(core::StoredResource resource, std::string drift_id, core::Decision decision);
  /// Takes back the approval that ended a drift of this backend.
  Task<Result<core::Drift>> undo_approval(core::Store::EndedDrift ended, core::Decision decision);
  /// Claims or releases an open drift of this backend.
  Task<Result<core::Drift>> claim(core::StoredResource resource, std::string drift_id, core::Claim claim);
  Task<Result<std::vector<core::Step>>> explain(core::ResourceId id, std::string path);
  core::BackendView view();  ///< of this moment
  /// Enforcement on a person's word (core/ports/enforcing.hpp).
  Task<Result<core::Enforcement>> enforce(std::string drift_id, std::string digest, bool dry_run, core::Asked asked);
  Task<Status> lift_stop(std::string drift_id, core::Asked asked);
  core::EnforcementView::Backend enforcement() { return enforcer_.view(); }
  /// As a source: returns why its report on `backend`, received at `reported_at`, may no longer be current. Empty if it
  /// is.
  std::string report_staleness(const std::string& backend, const std::string& place, Moment::Mono reported_at) const;
  /// True if the provider reports registrations of other backends.
  bool reports_registrations() const;
  /// True if it also listed all of them in its last refresh.
  bool listed_registrations() const;

  core::Session& session();
  bool is_stopping() const { return stopping_; }
  std::uint64_t cycles() const { return history_.cycles(); }  ///< finished ones in this process
  Ledger& ledger() { return ledger_; }
  BackendRegistration& registration() { return registration_; }

 private:
  Task<void> cycle_loop();  ///< runs cycles as the plan says
  Task<void> health_loop();
  Task<void> watch_loop();
  void loop_ended();
  Task<CycleReport> cycle(bool full);          ///< under the mutex: identity, list, discovery, registration
  Task<CycleReport> list(std::string cursor);  ///< one Cycle; an empty cursor lists everything
  /// Reads what the provider describes, and notes its schemas if it is another plugin than before.
  Task<Status> prepare();
  Task<Status> judge_under_lock(core::RecordPage page, Moment before, Moment received);
  Task<Status> judge_page(core::RecordPage page, Moment before, Moment received, bool ready);
  Task<Status> expire_decisions();  ///< sets decisions whose time is over back to pending
  /// Lets policy rules begin and end.
  Task<Status> turn_rules();
  Task<void> discover_if_due();  ///< what ask_discovery() asked for, between cycles
  Task<void> keep_times();       ///< what the clock alone changes: decisions that expire, rules that begin or end
  CyclePlan::Time next_time(CyclePlan::Time now) const;  ///< when keep_times() has something to do
  Status check_no_operation(const core::ResourceId& resource, const std::string& drift_id);
  int approvals_needed(const core::StoredResource& resource, const std::string& drift_id) const;
  std::optional<core::BackendRow> row_accepting(const core::Drift& drift, const core::Decision& decision) const;
  void log_failure(const Status& enforced) const;
  std::chrono::milliseconds cycle_deadline() const;  ///< a minute, or budgets.call if that is longer
  std::string state() const;                         ///< for a view
  void on_plugin_change();                           ///< everything is read again with the new plugin

  std::shared_ptr<Context> context_;
  std::shared_ptr<RegistrationSession> session_;          ///< never null
  std::shared_ptr<const core::ProviderInfo> noted_info_;  ///< its schemas are noted in the row
  Ledger ledger_;
  AsyncMutex cycle_mutex_;  ///< whoever changes the ledger holds it
  CyclePlan plan_;
  CycleHistory history_;
  IdentityCheck identity_;
  BackendRegistration registration_;
  BackendDiscovery discovery_;
  HealthMonitor health_;
  WatchLoop watch_;
  Enforcer enforcer_;
  asio::steady_timer all_ended_;
  int loops_ = 0;          ///< number of loops that run
  std::uint32_t run_ = 0;  ///< number of the last cycle; the index notes it with each resource that it saw
  CyclePlan::Time next_time_check_{};
  bool digests_ = false;  ///< the last cycle took in every record, so the next may get digests of them
  bool declarations_changed_ = false;
  bool stopping_ = false;
};

}  // namespace driftd::engine
