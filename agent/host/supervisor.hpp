// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "base/backoff.hpp"
#include "base/rate_limiter.hpp"
#include "host/call.hpp"
#include "host/host.hpp"
#include "host/jail_paths.hpp"
#include "host/line_log.hpp"
#include "host/worker.hpp"
#include "host/worker_channel.hpp"
#include "ipc/messages.hpp"
#include "ipc/plugin_file.hpp"
#include "ipc/text.hpp"

namespace driftd::host {

struct SupervisorSpec {
  core::SessionSpec session;
  std::string file;                              ///< path of the plugin
  std::shared_ptr<const ipc::PluginFile> bytes;  ///< sealed copy of the file that every worker loads
  std::string schema;          ///< settings schema as last seen; it names the paths that the jail opens; empty: unknown
  bool describe_only = false;  ///< a scan: load without open; the first failure is final
  bool trial = false;  ///< a new version: until adopt() the first failure is final and not a crash of the backend
  std::function<void()> jail_changed;  ///< called when a worker with a new jail runs, which may read other files
};

/// Keeps one worker alive and routes its frames. Core thread. Its coroutines keep it alive until stop() or drop() ends
/// its loop.
class Supervisor : public std::enable_shared_from_this<Supervisor> {
 public:
  using OnEvent = std::function<void(core::SessionEvent)>;
  Supervisor(HostOptions options, SupervisorSpec spec, OnEvent on_event);
  void start();

  /// Waits until calls can be made. Returns `unavailable` with the reason if that takes longer than `deadline`.
  static Task<Status> ready(std::shared_ptr<Supervisor> self, Steady::time_point deadline);
  static Task<Result<std::shared_ptr<const core::ProviderInfo>>> info(std::shared_ptr<Supervisor> self);
  /// Sends a call and enforces its deadline: cancel first, then kill.
  std::shared_ptr<Call> begin(ipc::FrameType type, std::string payload, Steady::time_point deadline);
  /// Returns the next frame of a call and gives back its credit; nullopt if the queue is empty.
  std::optional<ipc::Frame> pop(Call& call);
  /// Checks whether a call failed because a path of the settings was replaced since the worker started. If so, starts
  /// the next worker, which sees the new file, and returns the error of the call. Returns nullopt if the error has
  /// another cause.
  static Task<std::optional<Error>> check_replaced_paths(std::shared_ptr<Supervisor> self, Error error);
  /// Returns true while the worker is being replaced for that reason, until the next one is open.
  bool paths_replaced() const { return paths_replaced_; }
  void cancel(Call& call);
  void abandon(Call& call);  ///< cancels a call that nobody waits for and drops what still arrives
  static Task<void> stop(std::shared_ptr<Supervisor> self);
  /// Ends the trial of a version that was opened.
  void adopt() { spec_.trial = false; }
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

  const core::WorkerStatus& status();
  const core::SessionSpec& spec() const { return spec_.session; }
  const HostOptions& options() const { return options_; }
  const ipc::Scrubber& scrubber() const { return scrubber_; }
  const std::shared_ptr<const core::ProviderInfo>& described() const { return info_; }  ///< null until the first load
  asio::any_io_executor executor() const { return options_.core; }
  bool demote_supported = true;  ///< false once the plugin answered demote() with UNSUPPORTED

 private:
  static Task<void> run(std::shared_ptr<Supervisor> self);
  static Task<void> run_worker(std::shared_ptr<Supervisor> self);
  static Task<void> open(std::shared_ptr<Supervisor> self);
  static Task<Status> open_steps(std::shared_ptr<Supervisor> self);
  static Task<Result<ipc::CallResult>> simple_call(std::shared_ptr<Supervisor> self, ipc::FrameType type,
                                                   std::string payload);
  static Task<void> read_errors(std::shared_ptr<Supervisor> self);
  Task<void> pause(std::chrono::milliseconds timeout);
  void on_frame(ipc::Frame frame);
  void on_result(Call& call, ipc::Frame frame);
  void on_stream(Call& call, ipc::Frame frame);
  void give_credit(Call& call);
  /// Charges a frame to the credit of its call. Returns false and kills the worker if the call has none left.
  bool charge_credit(Call& call, const ipc::Frame& frame);
  void on_metric(const ipc::Frame& frame);
  void on_log(const ipc::Frame& frame);
  void on_permit(const std::shared_ptr<Call>& call, const ipc::Frame& frame);
  void arm(Call& call);
  void expire(Call& call);
  void kill(std::string reason);
  void arm_stop_timer();
  bool should_report(const std::string& what);
  void watch_usage();
  bool within_budgets();
  void record_result(const Call& call, const ipc::CallResult& result);
  void hit_budget(const std::string& budget, std::string message);
  void note_overdue(const Call& call);
  void on_worker_exit(const std::string& how);
  void after_crash();
  std::string in_flight() const;
  void fail_calls(const Error& error);
  void set_state(std::string state);
  void report(std::string what, std::string message);
  ipc::Load load_request();
  static Task<Status> verify_jail(std::shared_ptr<Supervisor> self, ipc::LoadAnswer loaded);
  /// Returns nullopt if the file system does not answer, or if the worker was replaced meanwhile.
  static Task<std::optional<JailPaths>> find_jail_paths(std::shared_ptr<Supervisor> self);
  static Task<void> check_jail_paths(std::shared_ptr<Supervisor> self);
  void restart_with_new_jail(const std::string& why);
  std::string open_payload() const;

  const HostOptions options_;
  SupervisorSpec spec_;
  OnEvent on_event_;
  ipc::Scrubber scrubber_;
  core::WorkerStatus status_;
  std::shared_ptr<const core::ProviderInfo> info_;
  std::shared_ptr<Worker> worker_;
  std::weak_ptr<Worker> unreaped_;  ///< was killed and has not ended yet
  std::shared_ptr<WorkerChannel> channel_;
  std::unique_ptr<LineLog> errors_;
  std::map<std::uint64_t, std::shared_ptr<Call>> calls_;
  std::map<std::string, RateLimiter> rates_;
  std::set<std::string> metrics_;  ///< declared by the plugin
  RateLimiter log_rate_, log_flood_{std::chrono::milliseconds(2), 10'000},
      metric_flood_{std::chrono::milliseconds(1), 20'000};
  std::uint64_t lines_dropped_ = 0;  ///< since the last printed line
  std::uint64_t next_call_ = 1;
  std::optional<Error> failure_;  ///< why load or open was refused; not a crash
  std::string kill_reason_;
  bool killed_ = false;          ///< the current worker was killed
  JailPaths jail_paths_;         ///< paths of the current worker
  bool needs_new_jail_ = false;  ///< the next worker gets other paths
  bool jail_retried_ = false;    ///< the current worker was started for that reason
  /// paths_replaced_: the jail changes because a path leads elsewhere, not because of the schema.
  bool checking_jail_paths_ = false, paths_replaced_ = false;
  bool stopping_ = false, finished_ = false, retired_ = false;
  Backoff backoff_;
  std::deque<Steady::time_point> crashes_;
  Steady::time_point running_since_{};
  std::optional<std::chrono::milliseconds> idle_cpu_;  ///< CPU time when the last call ended
  Steady::time_point jail_checked_{};
  std::map<std::string, Steady::time_point> last_reported_;  ///< by kind of misbehaviour
  asio::steady_timer retry_, usage_, stop_limit_;
  std::set<asio::steady_timer*> state_waiters_;  ///< cancelled at each change of state
};

}  // namespace driftd::host
