// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "base/async_mutex.hpp"
#include "core/ports/control.hpp"
#include "engine/cycle.hpp"
#include "engine/hysteresis.hpp"
#include "engine/ledger.hpp"
#include "engine/reason_log.hpp"
#include "engine/schedule.hpp"
#include "engine/sources/claims.hpp"
#include "engine/sources/registration_session.hpp"
#include "engine/sources/source_hub.hpp"

namespace driftd::engine {

/// Runs one backend: its schedule, health probes and watch, all under one AsyncMutex. Core thread only. Its loops keep
/// it alive until stop() ends them.
class Runner : public std::enable_shared_from_this<Runner> {
 public:
  Runner(std::shared_ptr<Context> context, core::BackendSpec spec, core::BackendRow row,
         std::shared_ptr<RegistrationSession> session);

  Task<Status> load();
  void start();
  Task<void> stop();

  /// Runs a cycle as soon as the one in progress has ended, and returns its report.
  Task<CycleReport> refresh(bool full);
  /// Starts the next cycle at once, because the backend may have changed.
  void hint();
  /// Applies new rules. The next cycle judges every known resource again.
  Task<void> reload(core::BackendSpec spec);
  /// Call it when declarations about this backend changed: everything is read again at once.
  void declared();
  /// True until a cycle has judged the backend under its current declarations.
  bool unsettled() const { return declarations_changed_; }
  /// True while a cycle, or anything else under the cycle mutex, is running.
  bool busy() const { return cycle_mutex_.locked(); }
  /// True if the configuration names this registrar, or if it discovered the backend.
  bool trusts(const core::Registrar& who) const;
  Claims& claims() { return claims_; }
  /// The namespace of its source in which a discovered backend was first found. Empty if the source has no namespaces,
  /// or if none was noted.
  const std::string& found_in() const { return found_in_; }
  void found_in(const std::string& name_space);
  /// Brings the drift of `claim/<backend>` in line with claims().
  Task<Status> update_claim_drift();
  /// Takes a report on this backend's registration. Returns true if the caller must call judge_report(), which judges
  /// the newest report.
  bool receive_report(RegistrationReport report, const std::string& registrar_uid);
  Task<Status> judge_report();
  /// Updates a discovered backend, with an UPDATED event if its registration changed.
  Task<Status> reregister(core::BackendSpec spec);
  void set_stretch(int factor) { schedule_.set_stretch(factor); }
  /// While `held` is true, nothing is read or committed (backpressure).
  void hold(bool held);

  /// Applies a person's decision to a drift of this backend.
  Task<Result<core::Drift>> decide(core::StoredResource resource, std::string drift_id, core::Decision decision);
  Task<Result<std::vector<core::Step>>> explain(core::ResourceId id, std::string path);
  core::BackendView view();
  /// As a source: returns why its report on `backend`, received at `reported_at`, may no longer be current. Empty if it
  /// is.
  std::string report_staleness(const std::string& backend, const std::string& place, Moment::Mono reported_at) const;
  /// True if the provider reports registrations of other backends.
  bool reports_registrations() const { return session_->inner_reports_registrations(); }
  /// True if it also listed all of them in its last refresh.
  bool listed_registrations() const { return session_->inner_reports_registrations() && session_->inner_listed(); }
  /// When a source last reported on this backend; {} if none did in this process.
  Moment::Mono reported_at() const { return reported_at_; }
  core::Session& session() { return *session_; }
  bool is_stopping() const { return stopping_; }
  std::uint64_t cycles() const { return cycles_; }
  Ledger& ledger() { return ledger_; }

 private:
  Schedule::Clock::time_point next_cycle() const;
  Task<void> cycle_loop();
  Task<void> health_loop();
  Task<void> watch_loop();
  Task<void> wait_until(asio::steady_timer& timer, Schedule::Clock::time_point when);
  Task<CycleReport> cycle(bool full);
  Task<Status> expire_decisions();
  Task<void> expire_decisions_in_time();
  Schedule::Clock::time_point next_expiry(Schedule::Clock::time_point now) const;
  Task<CycleReport> list(std::string cursor, std::chrono::milliseconds deadline);
  Task<Status> prepare();
  Task<Status> check_identity();
  void note_identity(const std::string& identity);
  Task<Status> check_missing_identity(Result<core::HealthReport> probed);
  std::chrono::milliseconds cycle_deadline() const;
  void invalidate_coverage(const Error& why);
  Task<void> probe();
  Task<void> publish_health(Hysteresis::Notice notice, core::HealthReport report);
  Task<Status> process_watch_page(core::RecordPage page);
  Task<Status> judge_page(core::RecordPage page, Moment before, Moment received, bool ready);
  Task<void> discover(bool changed);
  Task<Status> persist_registrar();
  Task<Status> load_claims();
  Task<Status> write_claim_drift();
  void add_unreported_registration(std::vector<core::Coverage>& coverage);
  std::optional<core::BackendRow> row_accepting(const core::Drift& drift, const core::Decision& decision) const;
  Task<void> ended();
  std::string state() const;
  void on_plugin_change();

  std::shared_ptr<Context> context_;
  std::shared_ptr<RegistrationSession> session_;
  std::shared_ptr<const core::ProviderInfo> noted_info_;  ///< its schemas are noted in the row
  Ledger ledger_;
  AsyncMutex cycle_mutex_;
  Schedule schedule_;
  Hysteresis hysteresis_;
  asio::steady_timer due_, probe_due_, watch_due_, all_ended_;
  core::HealthReport health_;
  std::vector<core::Coverage> coverage_;
  RegistrationLines registration_lines_;  ///< of the same cycle as `coverage_`
  ReasonLog reasons_log_;
  std::string last_error_;
  Code last_code_ = Code::ok;
  std::uint32_t run_ = 0;
  std::uint64_t cycles_ = 0, failures_ = 0;
  Nanos last_complete_ns_ = 0;             ///< end of the last complete cycle
  Moment::Mono listed_{}, reported_at_{};  ///< begin of the cycle of `coverage_`; time of the last report of a source
  Schedule::Clock::time_point last_full_{}, last_began_{}, next_discovery_{}, relisted_at_{}, next_expiry_check_{};
  /// From this time on, a cycle lists everything.
  Schedule::Clock::time_point relist_at_ = Schedule::Clock::time_point::max();
  Moment watched_;                                   ///< when the watch gave its last page, or began
  std::optional<core::Observation> pending_report_;  ///< received, but not judged yet
  std::string registrar_uid_, registrar_place_;      ///< uid of the last report's source, and the namespace in it
  std::string found_in_;
  Claims claims_;
  std::optional<core::Coverage> discovery_;  ///< coverage line of the last discovery
  bool left_out_ = false;                    ///< new resources were left out; once there is room, everything is read
  bool full_next_ = true;  ///< true in a new process and after a reload: the next cycle reads everything
  bool declarations_changed_ = false;
  bool hinted_ = false, stopping_ = false, held_back_ = false;
  bool identity_held_ = false;     ///< another system answered, and nobody has decided yet
  bool identity_changed_ = false;  ///< a probe found another system, and no cycle has checked since
  bool identity_missing_ = false;  ///< the system does not report its identity
  std::uint64_t restarts_seen_ = 0;
  std::uint64_t plugin_changes_ = 0;
  int loops_ = 0;
};

}  // namespace driftd::engine
