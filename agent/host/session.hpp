// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "host/plugin_scan.hpp"
#include "host/supervisor.hpp"

namespace driftd::host {

/// A session backed by a worker. Its supervisor is replaced when the plugin is upgraded, and is null until a plugin
/// file exists. The destructor kills the worker unless stop() ended it before. Owned by who opened it; the factory
/// keeps a weak reference, and each running call a strong one. Core thread. Which file has what: session.cpp the calls,
/// session_extensions.cpp those of the extensions, session_sink.cpp those of a sink plugin, session_life.cpp its
/// states, session_upgrade.cpp the upgrades.
class SupervisedSession final : public core::Session, public std::enable_shared_from_this<SupervisedSession> {
 public:
  /// `request_rescan` is called when somebody uses a session that waits for its plugin.
  SupervisedSession(HostOptions options, core::SessionSpec spec, Supervisor::OnEvent on_event,
                    std::function<void()> request_rescan);
  ~SupervisedSession() override;
  SupervisedSession(const SupervisedSession&) = delete;
  SupervisedSession& operator=(const SupervisedSession&) = delete;

  Task<Result<std::shared_ptr<const core::ProviderInfo>>> info() override;
  Task<Result<core::RefreshOutcome>> refresh(core::RefreshRequest request, core::PageHandler on_page) override;
  Task<Result<core::ReadOutcome>> read(std::vector<core::ResourceId> ids, std::chrono::milliseconds deadline) override;
  Task<Result<core::HealthReport>> health() override;
  Task<Status> watch(std::string cursor, core::PageHandler on_page) override;
  Task<Result<std::vector<core::Demotion>>> demote(core::ResourceId id, std::vector<core::Change> changes) override;
  Task<Result<core::DiscoverOutcome>> discover() override;
  Task<Result<std::string>> upgrade(std::string kind, std::uint32_t from_revision, std::string body) override;
  Task<Result<core::ApplyOutcome>> apply(core::ApplyRequest request) override;
  Task<core::DeliverEnd> deliver(core::DeliverRequest request, core::SettledHandler on_settled) override;
  Task<Status> flush(std::chrono::milliseconds timeout, std::uint64_t worker) override;
  std::uint64_t worker() const override { return supervisor_ ? supervisor_->worker_number() : 0; }
  void on_worker_change(std::function<void()> changed) override { worker_changed_ = std::move(changed); }
  core::WorkerStatus status() const override;
  Status resume() override;
  void on_change(std::function<void()> changed) override { changed_ = std::move(changed); }
  Task<void> stop() override;

  // For the factory:
  const core::SessionSpec& spec() const { return spec_; }
  const Plugin& plugin() const { return plugin_; }  ///< the plugin in use
  /// Starts the worker of the first plugin.
  void attach(Plugin plugin);
  /// Notes that there is no plugin yet: every call fails with `why`.
  void wait_for_plugin(Error why);
  bool waits_for_plugin() const { return supervisor_ == nullptr; }
  /// Switches to another file or to other bytes of the same file. A worker for it is started and opened first; then it
  /// takes over, and the old one finishes its calls. If that fails the old one stays, and status() and an event say
  /// why.
  static Task<void> try_upgrade(std::shared_ptr<SupervisedSession> self, Plugin next);
  void refuse(const Plugin& next, const std::string& why);  ///< keeps the version in use and reports why
  /// Returns true if this plugin was refused or is on trial, with the same stamp, bytes and pin.
  bool was_tried(const Plugin& next) const { return next == tried_; }
  /// Forgets any refused upgrade, because the file on disk is the version in use.
  void forget_refused_upgrade();

 private:
  std::shared_ptr<Supervisor> make(const Plugin& plugin, bool trial);
  /// Counts a failure of a new version that has not finished a refresh yet; reverts the upgrade after three.
  void count_upgrade_failure(const std::string& how);
  static Task<void> revert_upgrade(std::shared_ptr<SupervisedSession> self, std::string how);
  /// Fails with `cancelled` once stop() was called, with why there is no plugin, or as Supervisor::ready does.
  Task<Result<std::shared_ptr<Supervisor>>> ready(Steady::time_point deadline);
  struct CallAnswer {
    std::shared_ptr<Supervisor> supervisor;  ///< whose worker answered
    ipc::CallResult result;
  };
  /// Makes a call. If it failed because a path of the settings was replaced since the worker started, the next worker
  /// makes it once more, unless pages were already forwarded: a file that is replaced by rename is not a missing right.
  Task<Result<CallAnswer>> ask(ipc::FrameType type, std::string payload, Steady::time_point deadline,
                               core::PageHandler on_page);
  Status check_upgrade(const Plugin& next) const;
  static Task<void> retire(std::shared_ptr<SupervisedSession> self, std::shared_ptr<Supervisor> old);

  const HostOptions options_;
  const core::SessionSpec spec_;
  const Supervisor::OnEvent on_event_;
  const std::function<void()> request_rescan_;
  Plugin plugin_, tried_;           ///< in use; the last one that was refused or is on trial
  std::optional<Plugin> fallback_;  ///< the version before; set until the current one has finished a refresh
  int failures_since_upgrade_ = 0;
  bool up_ = false;  ///< the last health report was `up`: if a refresh then times out, the version is to blame
  std::shared_ptr<Supervisor> supervisor_;                      ///< null while it waits for its plugin
  std::vector<std::shared_ptr<Supervisor>> other_supervisors_;  ///< on trial, or finishing their calls
  std::optional<Error> missing_;                                ///< why there is no plugin
  std::string upgrade_refused_;  ///< why another version on disk does not serve; empty if none was refused
  std::function<void()> changed_, worker_changed_ = [] {};
  bool stopping_ = false;
};

/// Abandons a call if its caller stops waiting for it: by an error, an exception or a cancelled coroutine.
struct CallGuard {
  std::shared_ptr<Supervisor> supervisor;
  std::shared_ptr<Call> call;
  CallGuard(std::shared_ptr<Supervisor> s, std::shared_ptr<Call> c) : supervisor(std::move(s)), call(std::move(c)) {}
  CallGuard(const CallGuard&) = delete;
  CallGuard& operator=(const CallGuard&) = delete;
  ~CallGuard() {
    if (!call->done) supervisor->abandon(*call);
  }
};
/// Waits for the next frame of a call, or its end.
Task<void> wait_for_more(std::shared_ptr<Call> call);
/// Changes `cancelled` into `deadline` if the call was cancelled by its deadline and not by the caller.
ipc::CallResult with_deadline_code(const Call& call, ipc::CallResult result);

/// Runs a call to its end and passes its pages on in order. An error of `on_page` ends the call with that error. The
/// result carries the plugin's code, which may be other than ok.
Task<Result<ipc::CallResult>> run_call(std::shared_ptr<Supervisor> supervisor, std::shared_ptr<Call> call,
                                       core::PageHandler on_page);

}  // namespace driftd::host
