// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "host/plugin_scan.hpp"
#include "host/supervisor.hpp"

namespace driftd::host {

/// core::Session over a supervisor; over another one once its plugin was upgraded, and over none while there is no
/// plugin. Its end kills the worker, if stop() did not end it before.
class SupervisedSession final : public core::Session, public std::enable_shared_from_this<SupervisedSession> {
 public:
  /// `request_rescan`: called when something is wanted of a session that waits for its plugin.
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
  core::WorkerStatus status() const override;
  Status resume() override;
  void on_change(std::function<void()> changed) override { changed_ = std::move(changed); }
  Task<void> stop() override;

  // The factory's side.
  const core::SessionSpec& spec() const { return spec_; }
  const Plugin& plugin() const { return plugin_; }  ///< that serves
  /// The first plugin: its worker starts.
  void attach(Plugin plugin);
  /// There is no plugin yet: every call answers this.
  void wait_for_plugin(Error why);
  bool waits_for_plugin() const { return supervisor_ == nullptr; }
  /// Another file, or other bytes in it. A worker for it is started and opened first; then it takes over and the old
  /// one ends what it is at. When that fails the old one stays, and status() and an event say why.
  static Task<void> try_upgrade(std::shared_ptr<SupervisedSession> self, Plugin next);
  void refuse(const Plugin& next, const std::string& why);
  /// This was refused already, or is being tried, under the same circumstances.
  bool was_tried(const Plugin& next) const { return next == tried_; }
  void keep_current();  ///< the file that lies there is the one that serves

 private:
  std::shared_ptr<Supervisor> make(const Plugin& plugin, bool trial);
  /// The version that took over has not ended a refresh yet, and failed once more.
  void count_upgrade_failure(const std::string& how);
  static Task<void> revert_upgrade(std::shared_ptr<SupervisedSession> self, std::string how);
  Task<Result<std::shared_ptr<Supervisor>>> ready(Steady::time_point deadline);
  struct CallAnswer {
    std::shared_ptr<Supervisor> supervisor;  ///< whose worker answered
    ipc::CallResult result;
  };
  /// A call whose worker cannot see what is at a path of its settings now is made once more, by the next worker, unless
  /// it told something already: a file that is replaced by rename is no missing right.
  Task<Result<CallAnswer>> ask(ipc::FrameType type, std::string payload, Steady::time_point deadline,
                               core::PageHandler on_page);
  Status check_upgrade(const Plugin& next) const;
  static Task<void> retire(std::shared_ptr<SupervisedSession> self, std::shared_ptr<Supervisor> old);

  const HostOptions options_;
  const core::SessionSpec spec_;
  const Supervisor::OnEvent on_event_;
  const std::function<void()> request_rescan_;
  Plugin plugin_, tried_;
  std::optional<Plugin> fallback_;  ///< that served before, until the one that serves now has ended a refresh
  int failures_since_upgrade_ = 0;
  bool up_ = false;  ///< the system, as health said last: then a refresh that does not end is the version's own
  std::shared_ptr<Supervisor> supervisor_;
  std::vector<std::shared_ptr<Supervisor>> other_supervisors_;  ///< on trial, or ending
  std::optional<Error> missing_;
  std::string upgrade_refused_;
  std::function<void()> changed_;
  bool stopping_ = false;
};

/// Runs a call to its end and hands its pages on in order; an error of `on_page` ends the call with that error. The
/// answer may carry a code other than ok: the plugin's.
Task<Result<ipc::CallResult>> run_call(std::shared_ptr<Supervisor> supervisor, std::shared_ptr<Call> call,
                                       core::PageHandler on_page);

}  // namespace driftd::host
