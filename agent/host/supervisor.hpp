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
  std::string file;                              ///< of the plugin
  std::shared_ptr<const ipc::PluginFile> bytes;  ///< of that file, sealed: what every worker of this supervisor loads
  std::string schema;          ///< of its settings, as last seen: which paths the jail opens; empty: not known yet
  bool describe_only = false;  ///< scan: load, do not open; the first failure is final
  bool trial = false;          ///< a new version: the first failure is final and nobody's crash, until adopt()
  std::function<void()> jail_changed;  ///< a worker with another jail runs: what it could not read it may read now
};

/// Keeps one worker alive and routes its frames. Core thread. Lives until its loop ended, which stop() or abandon()
/// brings about.
class Supervisor : public std::enable_shared_from_this<Supervisor> {
 public:
  using OnEvent = std::function<void(core::SessionEvent)>;
  Supervisor(HostOptions options, SupervisorSpec spec, OnEvent on_event);
  void start();

  /// Waits until calls can be made; `unavailable` with the reason when that does not happen in time.
  static Task<Status> ready(std::shared_ptr<Supervisor> self, Steady::time_point deadline);
  static Task<Result<std::shared_ptr<const core::ProviderInfo>>> info(std::shared_ptr<Supervisor> self);
  /// Sends a call. Its deadline is kept from here on: cancel, then kill.
  std::shared_ptr<Call> begin(ipc::FrameType type, std::string payload, Steady::time_point deadline);
  /// The next frame of a call, with its credit given back; nullopt: the queue is empty.
  std::optional<ipc::Frame> pop(Call& call);
  /// What a call says that met a path which leads elsewhere than when the worker started: the next one, which starts
  /// now, gets it. Nothing: the error has another cause.
  static Task<std::optional<Error>> check_replaced_paths(std::shared_ptr<Supervisor> self, Error error);
  bool paths_replaced() const {
    return paths_replaced_;
  }  ///< the worker ends because of that, or the next one is not open yet
  void cancel(Call& call);
  void abandon(Call& call);  ///< nobody waits any more: cancel, drop what still comes
  static Task<void> stop(std::shared_ptr<Supervisor> self);
  /// A trial that opened serves from now on.
  void adopt() { spec_.trial = false; }
  /// Another version serves: the watch ends, and a worker that dies now is neither replaced nor a crash of the backend.
  void retire();
  /// Waits until no call is under way, at timeout until `deadline`.
  static Task<void> idle(std::shared_ptr<Supervisor> self, Steady::time_point deadline);
  Status resume();  ///< a parked worker starts at once; `conflict`: it is not parked
  void drop();      ///< the session's owner is gone: kill, end the loop
  /// The worker did what none of ours does, so its plugin has it: told, and killed. `what` follows "the worker".
  void kill_misbehaving(const std::string& what);

  const core::WorkerStatus& status();
  const core::SessionSpec& spec() const { return spec_.session; }
  const HostOptions& options() const { return options_; }
  const ipc::Scrubber& scrubber() const { return scrubber_; }
  const std::shared_ptr<const core::ProviderInfo>& described() const { return info_; }  ///< set once it ran
  asio::any_io_executor executor() const { return options_.core; }
  bool has_diff = true;  ///< until the plugin says UNSUPPORTED

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
  bool on_credit(Call& call, const ipc::Frame& frame);
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
  /// Nothing: the file system does not answer, or the worker is another one by now.
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
  std::weak_ptr<Worker> unreaped_;  ///< was killed and has not ended
  std::shared_ptr<WorkerChannel> channel_;
  std::unique_ptr<LineLog> errors_;
  std::map<std::uint64_t, std::shared_ptr<Call>> calls_;
  std::map<std::string, RateLimiter> rates_;
  std::set<std::string> metrics_;  ///< declared
  RateLimiter log_rate_, log_flood_{std::chrono::milliseconds(2), 10'000},
      metric_flood_{std::chrono::milliseconds(1), 20'000};
  std::uint64_t lines_dropped_ = 0;  ///< since the last one printed
  std::uint64_t next_call_ = 1;
  std::optional<Error> failure_;  ///< load or open said no; not a crash
  std::string kill_reason_;
  bool killed_ = false;          ///< this worker
  JailPaths jail_paths_;         ///< of the worker that runs
  bool needs_new_jail_ = false;  ///< this worker ends, the next gets other paths
  bool jail_retried_ = false;    ///< this worker is that next one
  /// paths_replaced: the next worker's jail is another because a path leads elsewhere
  bool checking_jail_paths_ = false, paths_replaced_ = false;
  bool stopping_ = false, finished_ = false, retired_ = false;
  Backoff backoff_;
  std::deque<Steady::time_point> crashes_;
  Steady::time_point running_since_{};
  std::optional<std::chrono::milliseconds> idle_cpu_;  ///< used when the last call ended
  Steady::time_point jail_checked_{};
  std::map<std::string, Steady::time_point> last_reported_;  ///< what a plugin does again and again
  asio::steady_timer retry_, usage_, stop_limit_;
  std::set<asio::steady_timer*> state_waiters_;  ///< cancelled at each change of state
};

}  // namespace driftd::host
