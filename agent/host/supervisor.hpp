// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <optional>

#include "host/call_router.hpp"
#include "host/crash_history.hpp"
#include "host/host.hpp"
#include "host/jail_keeper.hpp"
#include "host/permit_buckets.hpp"
#include "host/plugin_output.hpp"
#include "host/supervisor_spec.hpp"
#include "host/worker_budgets.hpp"
#include "host/worker_reports.hpp"
#include "host/worker_run.hpp"
#include "host/worker_state.hpp"

namespace driftd::host {

/// Keeps one worker of a backend alive: starts it, opens the plugin's instance, replaces a worker that ended, and stops
/// it. Its parts know the rest: calls, budgets, crashes, the jail, what the plugin prints, and what is reported. Owned
/// by a session or a scan. Its coroutines keep it alive until stop() or drop() ends its loop. Core thread.
class Supervisor : public std::enable_shared_from_this<Supervisor> {
 public:
  using OnEvent = WorkerReports::OnEvent;
  Supervisor(HostOptions options, SupervisorSpec spec, OnEvent on_event);
  void start();

  /// Waits until calls can be made. Returns `unavailable` with the reason if that takes longer than `deadline`.
  static Task<Status> ready(std::shared_ptr<Supervisor> self, Steady::time_point deadline);
  /// Waits until a worker has described its plugin, 20 s at most. Returns why load was refused, or `unavailable`.
  static Task<Result<std::shared_ptr<const core::ProviderInfo>>> info(std::shared_ptr<Supervisor> self);
  /// Sends a call and enforces its deadline: cancel first, then kill.
  std::shared_ptr<Call> begin(ipc::FrameType type, std::string payload, Steady::time_point deadline);
  /// Returns the next frame of a call and gives back its credit; nullopt if the queue is empty.
  std::optional<ipc::Frame> pop(Call& call) { return calls_->pop(call); }
  /// Cancels a call that nobody waits for and drops what still arrives.
  void abandon(Call& call) { calls_->abandon(call); }
  /// Checks whether a call failed because a path of the settings was replaced since the worker started. If so, starts
  /// the next worker, which sees the new file, and returns the error of the call. Returns nullopt if the error has
  /// another cause.
  static Task<std::optional<Error>> check_replaced_paths(std::shared_ptr<Supervisor> self, Error error);
  /// Returns true while the worker is being replaced for that reason, until the next one is open.
  bool paths_replaced() const { return jail_.paths_replaced(); }
  /// Cancels all calls, asks the worker to end and kills it after the grace time. Returns when it has ended, or
  /// 2 s after it should have (wait_for_end). Idempotent.
  static Task<void> stop(std::shared_ptr<Supervisor> self);
  /// Ends the trial of a version that was opened.
  void adopt() { spec_.role = WorkerRole::serving; }
  /// Another version has taken over: the watch ends. A worker that dies from now on is not replaced and is not a crash
  /// of the backend.
  void retire();
  /// Waits until no call is running, or until `deadline`.
  static Task<void> idle(std::shared_ptr<Supervisor> self, Steady::time_point deadline);
  Status resume();  ///< restarts a parked worker at once; `conflict` if it is not parked
  void drop();      ///< kills the worker and ends the loop, because the session is gone
  /// Kills a worker that did what our own code never does, because its plugin may have taken it over, and reports it.
  /// `what` continues a sentence that begins with "the worker".
  void kill_misbehaving(const std::string& what);
  std::uint64_t worker_number() const { return run_->alive() ? run_->number() : 0; }  ///< 0: there is none

  core::WorkerStatus status() const;
  const core::SessionSpec& spec() const { return spec_.session; }
  const HostOptions& options() const { return options_; }
  const ipc::Scrubber& scrubber() const { return scrubber_; }
  const std::shared_ptr<const core::ProviderInfo>& described() const { return info_; }  ///< null until the first load
  asio::any_io_executor executor() const { return options_.core; }
  bool demote_supported = true;  ///< false once the plugin answered demote() with UNSUPPORTED

 private:
  static Task<void> run(std::shared_ptr<Supervisor> self);  ///< the loop: one worker after the other
  static Task<void> run_worker(std::shared_ptr<Supervisor> self);
  static Task<void> open(std::shared_ptr<Supervisor> self);
  static Task<Status> open_steps(std::shared_ptr<Supervisor> self);
  static Task<Result<ipc::CallResult>> simple_call(std::shared_ptr<Supervisor> self, ipc::FrameType type,
                                                   std::string payload);

  void on_frame(ipc::Frame frame);
  Status handle_frame(ipc::Frame frame);  ///< `invalid` if a worker of ours never sends it
  Status handle_result(Call& call, const ipc::Frame& frame);

  void watch_usage();  ///< every 500 ms, for a process
  bool within_budgets();
  static Task<void> look_at_jail(std::shared_ptr<Supervisor> self);
  void restart_with_new_jail(const std::string& why);

  void kill(std::string reason) { run_->kill(std::move(reason)); }
  void arm_stop_timer();
  void on_worker_exit(const std::string& how);
  void after_crash();

  const HostOptions options_;
  SupervisorSpec spec_;
  const ipc::Scrubber scrubber_;
  WorkerStateSignal state_;
  bool stopping_ = false;         ///< stop() or drop() was called
  std::optional<Error> failure_;  ///< why load or open was refused; not a crash
  std::string last_exit_;         ///< how the last worker ended
  std::shared_ptr<const core::ProviderInfo> info_;
  std::shared_ptr<WorkerRun> run_;  ///< never null; the current worker, or the last one
  std::weak_ptr<Worker> unreaped_;  ///< was killed and has not ended yet
  const std::shared_ptr<CallRouter> calls_;
  PermitBuckets permits_;
  PluginOutput output_;
  WorkerReports reports_;
  WorkerBudgets budgets_;
  CrashHistory crashes_;
  JailKeeper jail_;
  asio::steady_timer retry_, usage_, stop_limit_;
};

}  // namespace driftd::host
