// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <boost/asio/steady_timer.hpp>
#include <memory>

#include "admin/server.hpp"
#include "app/agent_change_log.hpp"
#include "app/credentials.hpp"
#include "app/executors.hpp"
#include "app/grpc.hpp"
#include "app/links.hpp"
#include "app/registry.hpp"
#include "app/store_check.hpp"
#include "base/async_mutex.hpp"
#include "base/step_times.hpp"
#include "config/config.hpp"
#include "core/ports/control.hpp"
#include "delivery/announcer.hpp"
#include "delivery/approval_queue.hpp"
#include "delivery/notifier.hpp"
#include "delivery/relay.hpp"
#include "engine/engine.hpp"
#include "store/size_limit.hpp"
#include "store/sqlite_store.hpp"

namespace driftd::app {

/// All rooms of one agent, built and started in order and stopped in reverse. Core thread.
class Agent final : public core::Control {
 public:
  /// Opens the store and builds the rooms. Nothing runs yet. Blocks. `times` has the steps before; the rest is added,
  /// and logged once the agent is ready.
  static Result<std::unique_ptr<Agent>> build(config::Config config, Executors& executors, StepTimes times);

  /// Starts relay, engine and admin.
  Task<Status> start();
  /// Makes a start() in progress return `cancelled` at its next step. Call stop() once it has returned. Idempotent.
  void ask_to_stop();
  /// Stops everything; waits for events in flight for agent.drain at most. Idempotent.
  Task<void> stop();
  /// Returns true after stop() if a thread may still be in a sink that did not stop in time, or in a scan: nobody must
  /// wait for it.
  bool abandoned() const { return relay_->abandoned() || registry_->scanning(); }

  core::AgentView view() override;
  Task<Result<core::Drift>> decide(std::string drift_id, core::Decision decision) override;
  Task<Result<core::Drift>> claim(std::string drift_id, core::Claim claim) override;
  Task<Result<std::vector<core::Silence>>> silences() override;
  Task<Result<core::Silence>> add_silence(core::Silence silence, core::AuditEntry line) override;
  Task<Result<core::Silence>> expire_silence(std::string id, core::AuditEntry line) override;
  Task<Result<std::vector<BackendRefresh>>> refresh(std::string backend, bool full) override;
  Task<Result<std::vector<core::Step>>> explain(std::string backend, core::ResourceId id, std::string path) override;
  Task<Result<core::DiscoverOutcome>> discover(std::string backend) override;
  Task<Result<std::string>> schema(std::string provider, std::string what) override;
  Task<Result<ReloadReport>> reload() override;
  Task<Result<std::int64_t>> replay(Replay request) override;
  Task<Result<std::int64_t>> dead_letter(std::string sink, std::string verb, std::vector<std::int64_t> seqs) override;
  Task<Result<std::vector<std::string>>> resume(std::string name) override;
  std::string binding(const core::Drift& drift) override;
  Task<Status> audit(core::AuditEntry entry) override;
  Task<Result<core::Enforcement>> enforce(std::string drift_id, std::string digest, bool dry_run,
                                          core::Asked asked) override;
  Task<Status> lift_stop(std::string drift_id, core::Asked asked) override;
  Task<Status> switch_enforcement(bool on, core::Asked asked) override;
  core::EnforcementView enforcement() override;

  core::Reader& reader() { return *store_; }
  engine::Engine& engine() { return *engine_; }

 private:
  Agent(config::Config config, Executors& executors, StepTimes times);
  /// `plugins` is the last scan; without one a plugin's sink cannot be opened.
  using ScannedPlugins = std::vector<core::SessionFactory::ScanResult>;
  Result<std::unique_ptr<core::Sink>> open_sink(const config::SinkSpec& spec, const ScannedPlugins& plugins);
  /// Adds the sinks of plugins, which need a scan, or those that need none.
  Status add_sinks(bool of_plugins, const ScannedPlugins& plugins);
  using LoadedConfig = std::shared_ptr<const config::Config>;
  Task<Result<LoadedConfig>> load_next();
  Task<Result<ReloadReport>> apply_next(LoadedConfig loaded, std::vector<std::string>& rekeyed);
  Task<void> audit_rules();
  config::ValueMark mark_of_values() const;
  void apply_hot_changes(const config::Config& next);
  /// Checks that all of `next` can be used, before any of it is.
  Status check_next(const config::Config& next, const std::vector<std::string>& rekeyed, const ScannedPlugins& plugins);
  Task<Status> start_new_sinks(const config::Config& next, const ScannedPlugins& plugins);
  Status rekey_sinks(const config::Config& next, const std::vector<std::string>& names);
  void publish(core::SessionEvent event);
  Task<Result<core::Value>> notifications();
  void make_notifier();
  Status make_change_log();
  Task<void> start_change_log();
  core::ChangeLogView change_log_view() const;
  Task<void> run_maintenance();
  Task<Status> maintain_once();
  Task<void> audit_unwritten_denials(bool all);
  void publish_full_store();
  Status make_services();
  /// Opens the admin API and, if it is on, gRPC.
  Task<Status> listen();
  /// Logs how long the start took once every backend has ended its first cycle.
  void note_ready();
  std::string why_stopped_by_file() const;  ///< empty if no file stops enforcement
  void set_routes();
  void wake_readers();  ///< to be called after each commit
  /// [any thread]
  std::vector<std::string> agent_routes(const core::AgentEvent& event) const;

  config::Config config_;  ///< as loaded, with the hot changes of reloads
  std::vector<core::PendingRestart> needs_restart_;
  struct Routes {
    std::atomic<std::shared_ptr<const std::vector<core::Route>>> all;  ///< read by the store on its own thread
    std::vector<core::Route> of_callbacks;                             ///< beside those of the configuration
  } routes_;
  Executors& executors_;
  SystemClock clock_;
  admin::PrometheusMetrics metrics_;
  std::unique_ptr<store::SqliteStore> store_;
  std::shared_ptr<core::SessionFactory> sessions_;
  NotifyParts notify_;
  std::unique_ptr<delivery::Relay> relay_;
  std::shared_ptr<delivery::Announcer> announcer_;
  ChangeLogParts change_log_;
  std::shared_ptr<engine::Context> context_;
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<Registry> registry_;
  std::unique_ptr<secrets::CredentialAnswers> credentials_;
  std::unique_ptr<admin::Server> server_;
  std::unique_ptr<Grpc> grpc_;  ///< null: off
  asio::steady_timer maintenance_timer_;
  AsyncMutex reloading_;  ///< held during a reload, which may have to wait for files and receivers
  AsyncMutex changing_;   ///< held by a reload that applies what it has read, and by calls that change the registry
  struct Fullness {
    core::Outbox::Backlog backlog;
    store::SizeLimit limit;
  } fullness_;  ///< of the store, as maintenance found it last
  StoreCheck store_check_;
  struct Start {
    StepTimes times;
    Nanos at_ns = 0;
    bool relay_runs = false, over = false;  ///< the relay was started; start() has ended
    bool ready = false;                     ///< and so has the first cycle of every backend, which was logged
  } start_;
  struct Phase {
    bool stop_asked = false, stopping = false, maintenance_done = true;
  } phase_;
};

}  // namespace driftd::app
