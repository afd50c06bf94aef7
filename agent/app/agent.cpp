// SPDX-License-Identifier: Apache-2.0
#include "app/agent.hpp"

#include <boost/asio/as_tuple.hpp>
#include <filesystem>
#include <set>

#include "admin/listen.hpp"
#include "app/digests_sink.hpp"
#include "app/plugins.hpp"
#include "app/record.hpp"
#include "app/rule_paths.hpp"
#include "app/sinks.hpp"
#include "app/store.hpp"
#include "base/fatal.hpp"
#include "base/log.hpp"
#include "base/memory.hpp"
#include "base/trust.hpp"
#include "engine/context.hpp"
#include "engine/enforcement_switch.hpp"
#include "host/host.hpp"
#include "secrets/renewed_session.hpp"
#include "worker/jail.hpp"

namespace driftd::app {
namespace {

constexpr std::chrono::seconds kScanEnds{3};  // a worker that hangs is stopped within 2 s; a disk may hang for ever
Status stopped_early() { return fail(Code::cancelled, "asked to stop while starting"); }

/// How sessions of sink plugins are named (sinks/plugin).
constexpr std::string_view kSinkPrefix = "sink/";

/// Logs at each start how far this kernel can restrict a plugin's files and system calls.
void log_jail() {
  const std::string jail = worker::describe_kernel_jail();
  const bool whole = jail.find("no ") == std::string::npos;
  log::room("host").log(whole ? spdlog::level::info : spdlog::level::warn, "workers run in a jail: {}{}", jail,
                        whole ? "" : "; a plugin can do what this agent's user can, where the kernel does not hold it");
}

}  // namespace

Status check_workers(const config::Config& config) {
  const auto refused = [](const std::string& why) { return fail(Code::invalid, why); };
  const Status whole = worker::require_full_jail();
  if (config.agent.jail_required && !whole) {
    return refused("'jail' of 'agent' is required, and here workers get: " + whole.error().message +
                   "; allow landlock and seccomp for this process, or set `agent.jail: best-effort`");
  }
  for (const auto& backend : config.backends) {
    const bool outside = backend.isolation == core::SessionSpec::Isolation::in_process;
    if (config.agent.jail_required && outside) {
      return refused("'jail' of 'agent' is required, and backend '" + backend.name +
                     "' has `isolation: in-process`, where there is none");
    }
  }
  const std::string path = worker_path(config);
  for (const auto& step : resolve_path(path).steps) {
    const std::string why = tamper_risk(step);
    if (!why.empty()) return refused("the worker " + path + " is not run, because " + why);
  }
  return {};
}

std::string worker_path(const config::Config& config) {
  if (!config.agent.worker.empty()) return config.agent.worker;
  std::error_code unreadable;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", unreadable);
  return (self.parent_path() / "driftd-provider-host").string();
}

Agent::Agent(config::Config config, Executors& executors, StepTimes times)
    : config_(std::move(config)),
      executors_(executors),
      metrics_(config_.metrics.prefix),
      maintenance_timer_(executors.core.get_executor()),
      reloading_(executors.core.get_executor()),
      changing_(executors.core.get_executor()),
      store_check_(config_.agent.data_dir, executors),
      start_{std::move(times)} {}

Result<std::unique_ptr<Agent>> Agent::build(config::Config config, Executors& executors, StepTimes times) {
  std::unique_ptr<Agent> out(new Agent(std::move(config), executors, std::move(times)));
  const config::Config& c = out->config_;
  if (const Status workers = check_workers(c); !workers) {
    return fail(workers.error().code,
                config::render(config::ConfigError{c.file, {}, workers.error().message, {}, {}, {}}));
  }
  // A start that fails because another agent has the socket must not create a store. If there is a store, its lock
  // names the other agent first.
  const bool fresh = !std::filesystem::exists(std::filesystem::path(c.agent.data_dir) / "store.db");
  if (fresh) DRIFTD_CHECK(admin::check_unix(c.admin.socket));
  const auto core = executors.core.get_executor();
  DRIFTD_TRY(store::Settings settings, store_settings(c));
  out->start_.times.end("checks");
  out->routes_.all = std::make_shared<const std::vector<core::Route>>(c.routes);
  // agent_routes() follows reloads
  settings.route = [agent = out.get()](const core::AgentEvent& event) { return agent->agent_routes(event); };
  DRIFTD_TRY(out->store_, store::SqliteStore::open(std::move(settings), executors.store.get_executor(),
                                                   executors.io.get_executor(), out->clock_));
  out->start_.times.end("store");
  DRIFTD_CHECK(admin::check_unix(c.admin.socket));
  delivery::RelaySettings relay;
  relay.agent = c.agent.name;
  relay.cluster = c.agent.cluster;
  relay.routes = [agent = out.get()](const core::AgentEvent& event) { return agent->agent_routes(event); };
  relay.appended = [agent = out.get()] {
    if (agent->grpc_) agent->grpc_->wake();
  };
  relay.drop_pending = c.delivery.drop_pending;
  relay.drain = c.agent.drain;
  relay.metrics = &out->metrics_;
  out->relay_ = std::make_unique<delivery::Relay>(core, *out->store_, out->clock_, std::move(relay));
  out->announcer_ = std::make_shared<delivery::Announcer>(
      core, *out->store_, [agent = out.get()](const core::AgentEvent& event) { return agent->agent_routes(event); },
      [agent = out.get()] { agent->wake_readers(); });
  DRIFTD_CHECK(out->add_sinks(false, {}));
  const auto uses = std::make_shared<secrets::SecretUses>(c);
  host::HostOptions host = host_options(c, executors);
  host.more_own = [uses] { return uses->protected_files(); };
  secrets::RenewalOptions renewal{
      core, executors.io.get_executor(), &out->clock_, host::make_session_factory(std::move(host)), {}, {}};
  renewal.on_program = [agent = out.get()](const std::string& backend, bool ok) {
    agent->metrics_.secret_program(backend, ok);
  };
  out->sessions_ = secrets::with_secrets(std::move(renewal), uses);
  log_jail();
  out->sessions_->on_event([agent = out.get()](core::SessionEvent event) { agent->publish(std::move(event)); });
  const auto& key = out->store_->key();
  out->context_ = std::make_shared<engine::Context>(engine::Context{
      core, executors.diff.get_executor(), *out->store_, out->clock_, out->metrics_, key.store, c.agent.name,
      c.agent.cluster, out->routes_.all.load(), [agent = out.get()] { agent->wake_readers(); }});
  out->context_->enforcement = std::make_shared<engine::EnforcementSwitch>();
  out->context_->enforcement->stop_file = [agent = out.get()] { return agent->why_stopped_by_file(); };
  out->context_->first_cycle_ended = [agent = out.get()] { agent->note_ready(); };
  out->engine_ = std::make_unique<engine::Engine>(out->context_, *out->sessions_, key.worker, key.digest_seed);
  out->registry_ = std::make_unique<Registry>(c, Registry::Needs{*out->engine_, *out->sessions_, *out->store_, uses,
                                                                 executors, out->changing_, out->mark_of_values()});
  DRIFTD_CHECK(out->make_services());
  out->start_.at_ns = out->clock_.wall();
  return out;
}

Status Agent::make_services() {
  make_notifier();
  DRIFTD_CHECK(make_change_log());
  secrets::CredentialNeeds credentials;
  credentials.core = executors_.core.get_executor();
  credentials.io = executors_.io.get_executor();
  credentials.clock = &clock_;
  credentials.uses = [this](const std::string& backend) { return registry_->references(backend); };
  credentials.audit = [this](core::AuditEntry entry) { return audit(std::move(entry)); };
  credentials_ = std::make_unique<secrets::CredentialAnswers>(std::move(credentials));
  DRIFTD_TRY(auto grants, find_grants(config_.resolve));
  credentials_->set_grants(std::move(grants), config_.resolve.per_minute);
  GrpcNeeds needs{executors_, *store_, *store_, *store_, *relay_, *registry_, {}, {}, *credentials_, {}};
  needs.backends = [this] { return engine_->registrations(); };
  needs.audit = [this](core::AuditEntry entry) { return audit(std::move(entry)); };
  needs.route = [this](std::vector<core::Route> routes) {
    routes_.of_callbacks = std::move(routes);
    set_routes();
  };
  DRIFTD_TRY(grpc_, make_grpc(config_, std::move(needs)));
  return {};
}

void Agent::set_routes() {
  auto routes = config_.routes;
  routes.insert(routes.end(), routes_.of_callbacks.begin(), routes_.of_callbacks.end());
  routes_.all = std::make_shared<const std::vector<core::Route>>(std::move(routes));
  context_->routes = routes_.all.load();
}

void Agent::wake_readers() {
  relay_->wake();
  if (grpc_) grpc_->wake();
  notify_.notifier->wake();
  if (change_log_.runner) change_log_.runner->wake();
}

Result<std::unique_ptr<core::Sink>> Agent::open_sink(const config::SinkSpec& spec, const ScannedPlugins& plugins) {
  const auto core = executors_.core.get_executor();
  if (!notify_.links) notify_.links = std::make_unique<Links>(*store_, clock_, config_.notifications.links);
  DRIFTD_TRY(auto sink, is_plugin_sink(spec) ? make_plugin_sink(spec, core, sessions_, plugins)
                                             : make_sink(spec, core, executors_.io.get_executor(), clock_,
                                                         notify_.links->maker(spec.name)));
  return spec.digests_only ? digests_only(std::move(sink), store_->key()) : std::move(sink);
}

Status Agent::add_sinks(bool of_plugins, const ScannedPlugins& plugins) {
  for (const auto& spec : config_.sinks) {
    if (is_plugin_sink(spec) != of_plugins) continue;
    auto sink = open_sink(spec, plugins);
    if (!sink) {
      config::ConfigError error{config_.file, spec.at, sink.error().message, {}, {}, {}};
      return fail(Code::invalid, config::render(error));
    }
    relay_->add_sink(spec.name, spec.type, std::move(*sink));
  }
  return {};
}

Task<Status> Agent::start() {
  start_.times.end("sinks");
  const auto plugins = co_await sessions_->scan();
  start_.times.end("plugins");
  DRIFTD_CO_TRY(auto specs, co_await registry_->start(plugins));
  warn_of_rule_paths(config_, plugins);
  DRIFTD_CO_CHECK(add_sinks(true, plugins));
  if (phase_.stop_asked) co_return stopped_early();
  if (grpc_) {
    DRIFTD_CO_CHECK(co_await grpc_->load());
  }
  DRIFTD_CO_CHECK(co_await relay_->start());
  start_.relay_runs = true;
  DRIFTD_CO_CHECK(co_await store_->announce());
  co_await audit_rules();
  wake_readers();
  start_.times.end("sinks");
  if (phase_.stop_asked) co_return stopped_early();
  DRIFTD_CO_CHECK(co_await engine_->start(std::move(specs), true));
  notify_.notifier->start();
  co_await start_change_log();
  start_.times.end("backends");
  if (phase_.stop_asked) co_return stopped_early();
  DRIFTD_CO_CHECK(co_await listen());
  sessions_->watch(true);
  phase_.maintenance_done = false;
  asio::co_spawn(executors_.core, run_maintenance(), fatal);
  start_.times.end("admin");
  start_.over = true;
  note_ready();
  co_return Status{};
}

void Agent::note_ready() {
  std::string why;
  if (start_.ready || !start_.over || !engine_->ready(why)) return;
  start_.ready = true;
  start_.times.end("first cycles");
  log::room("app").info("ready after {}", start_.times.render());
}

Task<Status> Agent::listen() {
  admin::ServerSettings settings;
  settings.socket = config_.admin.socket;
  settings.socket_group = config_.admin.socket_group;
  settings.policy.uids = config_.admin.uids;
  settings.policy.gids = config_.admin.gids;
  settings.read_group = config_.admin.read_group;
  settings.decide_group = config_.admin.decide_group;
  settings.listen = config_.admin.listen;
  settings.is_worker = &host::is_worker;
  admin::ApiDependencies deps{*this,
                              *store_,
                              metrics_,
                              [this] { return sessions_->scan(); },
                              [this] { return notifications(); },
                              [this] { asio::post(executors_.io, release_free_memory); },
                              executors_.io.get_executor(),
                              credentials_.get()};
  auto server = admin::Server::open(executors_.core.get_executor(), std::move(settings), std::move(deps));
  if (!server) co_return fail(server.error());
  server_ = std::move(*server);
  server_->start();
  if (notify_.links) DRIFTD_CO_CHECK(notify_.links->listen(executors_.core.get_executor(), *this));
  if (grpc_) {
    DRIFTD_CO_CHECK(co_await grpc_->start());
  }
  co_return Status{};
}

void Agent::ask_to_stop() {
  phase_.stop_asked = true;
  sessions_->watch(false);  // also ends the scan that start() may wait for
}

Task<void> Agent::stop() {
  if (phase_.stopping) co_return;
  phase_.stopping = true;
  registry_->stop();
  sessions_->watch(false);
  co_await engine_->stop();  // ends the cycles that API requests wait for
  if (server_) co_await server_->stop();
  if (notify_.links) co_await notify_.links->stop();
  if (grpc_) co_await grpc_->stop();
  co_await audit_unwritten_denials(true);
  announcer_->stop();
  notify_.notifier->stop();
  if (change_log_.runner) change_log_.runner->stop();
  store_check_.cancel();
  if (start_.relay_runs) co_await relay_->stop();
  const auto patience = std::chrono::steady_clock::now() + kScanEnds;
  const auto scans = [&] { return registry_->scanning() && std::chrono::steady_clock::now() < patience; };
  while (!phase_.maintenance_done || !registry_->idle() || !announcer_->idle() || !notify_.notifier->idle() ||
         (change_log_.runner && !change_log_.runner->idle()) || !store_check_.idle() || scans()) {
    store_check_.cancel();
    maintenance_timer_.cancel();
    asio::steady_timer soon(executors_.core, std::chrono::milliseconds(5));
    co_await soon.async_wait(asio::as_tuple(asio::use_awaitable));
  }
}

std::vector<std::string> Agent::agent_routes(const core::AgentEvent& event) const {
  return agent_event_sinks(*routes_.all.load(), event);
}

void Agent::publish(core::SessionEvent event) {
  static const std::set<std::string> kEvents = {
      "budget",           "parked",         "secret_denied",  "upgrade_refused",
      "upgrade_reverted", "plugin_refused", "program_failed", "secret_file_failed"};
  if (!kEvents.contains(event.what)) return;
  core::AgentEvent out;
  out.agent = config_.agent.name;
  out.cluster = config_.agent.cluster;
  out.what = event.what;
  if (event.backend.starts_with(kSinkPrefix)) {
    out.details["sink"] = event.backend.substr(kSinkPrefix.size());
  } else {
    out.backend = event.backend;
  }
  out.message = event.message;
  out.at_ns = clock_.wall();
  announcer_->publish(std::move(out));
}

}  // namespace driftd::app
