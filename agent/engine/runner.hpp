// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "base/async_mutex.hpp"
#include "base/backoff.hpp"
#include "core/ports/control.hpp"
#include "engine/cycle.hpp"
#include "engine/hysteresis.hpp"
#include "engine/ledger.hpp"
#include "engine/reason_log.hpp"
#include "engine/schedule.hpp"
#include "engine/sources/claims.hpp"
#include "engine/sources/registration_session.hpp"

namespace driftd::engine {

/// One backend at work: its schedule, its health probes, its watch, all under one AsyncMutex. Core thread only. Its
/// loops keep it alive; stop() ends them.
class Runner : public std::enable_shared_from_this<Runner> {
 public:
  Runner(std::shared_ptr<Context> context, core::BackendSpec spec, core::BackendRow row,
         std::shared_ptr<RegistrationSession> session);

  Task<Status> load();
  void start();
  Task<void> stop();

  /// Runs a cycle now, after the one in progress, and reports it.
  Task<CycleReport> refresh(bool full);
  /// The backend may have changed: the next cycle starts at once.
  void hint();
  /// New rules: everything known is judged again in the next cycle.
  Task<void> reload(core::BackendSpec spec);
  /// What sources declare of this backend moved: everything is read again at once.
  void declared();
  /// It has not been judged under what sources declare of it now.
  bool unsettled() const { return declarations_changed_; }
  /// A cycle, or something else that only one may do at a time, is under way.
  bool busy() const { return cycle_mutex_.locked(); }
  /// Whom the configuration named, or who discovered it.
  bool trusts(const core::Registrar& who) const;
  Claims& claims() { return claims_; }
  /// Where in its source a discovered backend was found first; empty: the source has no such places, or nobody noted
  /// it.
  const std::string& found_in() const { return found_in_; }
  void found_in(const std::string& name_space);
  /// The drift of `claim/<backend>` as claims() says now.
  Task<Status> update_claim_drift();
  /// A source reports_registrations of this backend's registration. True: judge_report() is to be called, which judges
  /// the newest report.
  bool receive_report(RegistrationReport report, const std::string& registrar_uid);
  Task<Status> judge_report();
  /// A discovered backend as discovered now; an UPDATED event where its registration changed.
  Task<Status> reregister(core::BackendSpec spec);
  void set_stretch(int factor) { schedule_.set_stretch(factor); }
  /// Backpressure: nothing is read or committed while true.
  void hold(bool held);

  /// A person's decision on a drift of this backend.
  Task<Result<core::Drift>> decide(core::StoredResource resource, std::string drift_id, core::Decision decision);
  Task<Result<std::vector<core::Step>>> explain(core::ResourceId id, std::string path);
  core::BackendView view();
  /// As a source: why what it identity of that backend at `reported_at` may not hold any more; empty: it does.
  std::string report_staleness(const std::string& backend, const std::string& place, Moment::Mono reported_at) const;
  /// Its provider reports_registrations of the registration of others.
  bool reports_registrations() const { return session_->inner_reports_registrations(); }
  /// And listed all of them in its last refresh.
  bool listed_registrations() const { return session_->inner_reports_registrations() && session_->inner_listed(); }
  /// When a source spoke of this backend last; {}: not in this process.
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
  std::shared_ptr<const core::ProviderInfo> noted_info_;  ///< whose schemas the row has
  Ledger ledger_;
  AsyncMutex cycle_mutex_;
  Schedule schedule_;
  Hysteresis hysteresis_;
  asio::steady_timer due_, probe_due_, watch_due_, all_ended_;
  core::HealthReport health_;
  std::vector<core::Coverage> coverage_;
  RegistrationLines registration_lines_;  ///< of the same cycle
  ReasonLog reasons_log_;
  std::string last_error_;
  Code last_code_ = Code::ok;
  std::uint32_t run_ = 0;
  std::uint64_t cycles_ = 0, failures_ = 0;
  Nanos last_complete_ns_ = 0;             ///< end of the last complete cycle
  Moment::Mono listed_{}, reported_at_{};  ///< begin of the cycle that `coverage_` tells of; last report of a source
  Schedule::Clock::time_point last_full_{}, last_began_{}, next_discovery_{}, relisted_at_{}, next_expiry_check_{};
  /// a cycle from then on lists everything
  Schedule::Clock::time_point relist_at_ = Schedule::Clock::time_point::max();
  Moment watched_;                                   ///< when the watch gave its last page, or began
  std::optional<core::Observation> pending_report_;  ///< reported_at, and not judged yet
  std::string registrar_uid_, registrar_place_;  ///< uid of the source whose report was reported_at last; where in it
  std::string found_in_;
  Claims claims_;
  std::optional<core::Coverage> discovery_;  ///< line of coverage of the last one
  bool left_out_ = false;  ///< for what is new there was no room: where some comes, everything is read
  bool full_next_ = true;  ///< the first cycle of a process, and the one after a reload, reads everything
  bool declarations_changed_ = false;
  bool hinted_ = false, stopping_ = false, held_back_ = false;
  bool identity_held_ = false;     ///< another system answered and nobody has decided
  bool identity_changed_ = false;  ///< a probe met another system, and no cycle has asked since
  bool identity_missing_ = false;  ///< what answers does not say which one it is
  std::uint64_t restarts_seen_ = 0;
  std::uint64_t plugin_changes_ = 0;
  int loops_ = 0;
};

}  // namespace driftd::engine
