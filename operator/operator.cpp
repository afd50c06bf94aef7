// SPDX-License-Identifier: Apache-2.0
#include "operator/operator.hpp"

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <memory>
#include <random>
#include <thread>

#include "base/backoff.hpp"
#include "base/digest.hpp"
#include "base/escape.hpp"
#include "base/log.hpp"
#include "controller/controller.hpp"
#include "controller/scheduler.hpp"
#include "controller/watcher.hpp"
#include "kube/json_access.hpp"
#include "operator/backend_reconciler.hpp"
#include "operator/host_call.hpp"
#include "operator/leader.hpp"
#include "operator/metrics.hpp"
#include "operator/pattern_reconciler.hpp"
#include "operator/release_reconciler.hpp"
#include "operator/status_server.hpp"
#include "operator/types.hpp"

namespace driftd::op {
namespace {

using nlohmann::json;

constexpr int kLostLease = 1;

controller::Log log_to(const char* room) {
  return [room](controller::LogLevel level, const std::string& text) {
    const auto severity = level == controller::LogLevel::error     ? spdlog::level::err
                          : level == controller::LogLevel::warning ? spdlog::level::warn
                                                                   : spdlog::level::info;
    log::room(room).log(severity, "{}", escaped(text));
  };
}

std::uint64_t digest_of(const json& value) { return digest(0, {value.dump()}).low; }

controller::ResourceMeta meta_of(const json& object) {
  controller::ResourceMeta out;
  out.uid = kube::text(object, {"metadata", "uid"});
  out.api_version = kube::text(object, {"apiVersion"});
  out.kind = kube::text(object, {"kind"});
  out.key = {kube::text(object, {"metadata", "namespace"}), kube::text(object, {"metadata", "name"})};
  const json& generation = kube::find(object, {"metadata", "generation"});
  if (generation.is_number_integer()) out.generation = generation.get<std::int64_t>();
  const json& observed = kube::find(object, {"status", "observedGeneration"});
  if (observed.is_number_integer()) out.observed_generation = observed.get<std::int64_t>();
  out.deleting = kube::find(object, {"metadata", "deletionTimestamp"}).is_string();
  out.status_digest = digest_of(kube::find(object, {"status"}));
  json rest = object;
  rest.erase("status");
  for (const char* name : {"resourceVersion", "managedFields"}) rest["metadata"].erase(name);
  out.rest_digest = digest_of(rest);
  return out;
}

/// Everything that runs while this process leads.
class Work {
 public:
  Work(const Settings& settings, kube::Api& api)
      : settings_(settings),
        view_(handlers()),
        clients_(api),
        events_(settings.identity),
        registry_(make_registry()),
        reconciler_({view_, *registry_, clients_, events_}, settings.limits),
        watcher_({kPrismBackends.object, settings.identity}, settings.controllers, clock_, nullptr, log_to("operator")),
        backends_("backends", settings.controllers, clock_, reconciler_, log_to("operator"), std::random_device{}()),
        release_reconciler_({view_, releases_, clients_}),
        release_controller_("releases", settings.controllers, clock_, release_reconciler_, log_to("operator"),
                            std::random_device{}()),
        pattern_reconciler_({view_, clients_, events_}, settings.limits),
        pattern_watcher_({kPrismPatterns.object, settings.identity}, settings.controllers, clock_, nullptr,
                         log_to("operator")),
        patterns_("patterns", settings.controllers, clock_, pattern_reconciler_, log_to("operator"),
                  std::random_device{}()),
        scheduler_(settings.controllers, clock_, jobs(), log_to("operator")),
        reflector_(api, followed(), view_) {
    watcher_.add_handler([this](const controller::Change& change) { backends_.handle(change); });
    pattern_watcher_.add_handler([this](const controller::Change& change) { patterns_.handle(change); });
  }
  ~Work() { stop(); }

  void start() {
    backends_.start();
    if (settings_.discovers_releases) release_controller_.start();
    if (settings_.deploys_patterns) patterns_.start();
    scheduler_.start();
    threads_.emplace_back([this] { follow_cluster(); });
    if (agent_) threads_.emplace_back([this] { agent_->run(ending_.get_token()); });
  }
  /// Nothing is written any more when it returns. May be called again.
  void stop() {
    ending_.request_stop();
    for (auto& thread : threads_) thread.join();
    threads_.clear();
    scheduler_.stop();
    patterns_.stop();
    release_controller_.stop();
    backends_.stop();
  }
  std::string unready() const {
    if (!reflector_.has_synced()) return "not all objects of the cluster have been listed yet";
    return {};
  }
  void measure(OperatorMetrics& out) const {
    out.has_agent = agent_ != nullptr;
    out.agent_connected = agent_ != nullptr && agent_->is_connected();
    out.faults = view_.faults();
    out.watcher = watcher_.metrics();
    out.controllers[kPrismBackends.object] = backends_.metrics();
    if (settings_.discovers_releases) out.controllers[kReleases.object] = release_controller_.metrics();
    if (settings_.deploys_patterns) out.controllers[kPrismPatterns.object] = patterns_.metrics();
    out.scheduler = scheduler_.metrics();
  }

 private:
  ClusterView::Handlers handlers() {
    ClusterView::Handlers out;
    out.on_backend = [this](const json& object, bool gone) {
      observe(watcher_, object, gone);
      look_at_release_of(object);
    };
    out.on_application = [this](const json& object, bool gone) { observe(pattern_watcher_, object, gone); };
    out.on_reference = [this](const std::string& who) {
      if (const auto release = release_of_reference(who)) return release_controller_.add(*release);
      if (const auto pattern = pattern_of_reference(who)) return patterns_.add(*pattern);
      backends_.add({{}, who});
    };
    out.on_backends_synced = [this] {
      watcher_.set_watching(true);
      look_at_all_releases();
    };
    out.on_releases_synced = [this] { look_at_all_releases(); };
    out.on_release = [this](const json& secret, bool gone) {
      if (const auto key = releases_.observe(secret, gone)) release_controller_.add(*key);
    };
    out.on_patterns = [this](const json& map, bool gone) { take_patterns(map, gone); };
    return out;
  }

  static void observe(controller::Watcher& watcher, const json& object, bool gone) {
    const controller::ResourceMeta meta = meta_of(object);
    if (gone) {
      watcher.observe_deleted(meta.key, meta.uid);
    } else {
      watcher.observe(meta);
    }
  }

  /// The release that an object was made of may have to make it again, or may be gone.
  void look_at_release_of(const json& object) {
    if (!settings_.discovers_releases) return;
    if (const auto key = release_of(object)) release_controller_.add(*key);
  }
  /// Objects may be left of releases that went while no operator ran.
  void look_at_all_releases() {
    for (const auto& name : view_.backends()) look_at_release_of(view_.backend(name).object);
    for (const auto& key : releases_.keys()) release_controller_.add(key);
  }

  void take_patterns(const json& map, bool gone) {
    const json& yaml = kube::find(map, {"data", "patterns.yaml"});
    try {
      auto patterns = gone || !yaml.is_string() ? std::vector<ChartPattern>() : read_patterns(yaml.get<std::string>());
      log::room("operator").info("{} chart patterns of the ConfigMap prism-helm-patterns are in use", patterns.size());
      release_reconciler_.set_patterns(std::move(patterns));
      look_at_all_releases();
    } catch (const std::exception& error) {
      const std::string why = std::string("the former patterns stay in use: ") + error.what();
      log::room("operator").error("ConfigMap prism-helm-patterns: {}", escaped(why));
      HostCall host(ending_.get_token(), std::chrono::steady_clock::now() + std::chrono::seconds(20));
      json about = map;
      about["apiVersion"] = "v1";
      about["kind"] = "ConfigMap";
      clients_.with(host.call(), [&](kube::ObjectClient& client) {
        events_.write(host.call(), client, about, {true, "InvalidPatterns", why});
      });
    }
  }

  std::unique_ptr<Registry> make_registry() {
    if (!settings_.agent) return std::make_unique<NoRegistry>();
    AgentRegistry::Handlers handlers;
    handlers.changed = [this](const std::string& backend) {
      if (watcher_.find({{}, backend})) backends_.add({{}, backend});
    };
    handlers.all_changed = [this] {
      for (const auto& key : watcher_.keys()) backends_.add(key);
    };
    auto out = std::make_unique<AgentRegistry>(*settings_.agent, std::move(handlers));
    agent_ = out.get();
    return out;
  }

  controller::Jobs jobs() {
    controller::Jobs out;
    out.resync = [this] {
      const std::size_t releases = settings_.discovers_releases ? release_controller_.resync(releases_.keys()) : 0;
      return releases + patterns_.resync(pattern_watcher_.keys()) + backends_.resync(watcher_.keys());
    };
    // An object whose deletion was missed, or whose release went, is found here at the latest.
    out.cleanup = [this](const std::stop_token&) -> controller::Status {
      look_at_all_releases();
      return {};
    };
    out.count_by_phase = [this] { return view_.count_by_phase(); };
    return out;
  }

  std::vector<kube::Followed> followed() const {
    std::vector<kube::Followed> out{{kPrismBackends, {}}};
    for (const auto& resource : {kServices, kSecrets, kConfigMaps})
      out.push_back({resource, settings_.limits.namespaces});
    if (settings_.discovers_releases) {
      out.push_back({kReleases, settings_.limits.namespaces});
      out.push_back({kPatterns, {settings_.space}});
    }
    if (settings_.deploys_patterns) {
      out.push_back({kPrismPatterns, settings_.limits.namespaces});
      out.push_back({kDeployments, settings_.limits.namespaces});
    }
    return out;
  }

  void follow_cluster() {
    Backoff backoff(std::chrono::seconds(1), std::chrono::seconds(30));
    std::mutex waiting;
    std::condition_variable_any wake;
    const std::stop_token stop = ending_.get_token();
    while (!stop.stop_requested()) {
      HostCall host(stop);
      try {
        reflector_.run(host.call());
      } catch (const std::exception& error) {
        log::room("operator").error("the cluster cannot be followed, and is tried again: {}", escaped(error.what()));
      }
      watcher_.set_watching(false);
      std::unique_lock lock(waiting);
      wake.wait_for(lock, stop, backoff.next(), [] { return false; });
    }
  }

  const Settings& settings_;
  const controller::SystemClock clock_;
  std::stop_source ending_;
  AgentRegistry* agent_ = nullptr;  ///< `registry_`, if it is one
  ClusterView view_;
  ClientPool clients_;
  KubeEvents events_;
  const std::unique_ptr<Registry> registry_;
  BackendReconciler reconciler_;
  controller::Watcher watcher_;
  controller::Controller backends_;
  ReleaseView releases_;
  ReleaseReconciler release_reconciler_;
  controller::Controller release_controller_;
  PatternReconciler pattern_reconciler_;
  controller::Watcher pattern_watcher_;
  controller::Controller patterns_;
  controller::Scheduler scheduler_;
  kube::Reflector reflector_;
  std::vector<std::thread> threads_;
};

/// What the probes and metrics show: the work, if this process leads.
class Shown {
 public:
  void set(const Work* work) {
    const std::lock_guard lock(mutex_);
    work_ = work;
  }
  std::string unready() const {
    const std::lock_guard lock(mutex_);
    return work_ == nullptr ? std::string() : work_->unready();  // one that waits for the lease is ready to take over
  }
  std::string metrics() const {
    OperatorMetrics out;
    const std::lock_guard lock(mutex_);
    out.leads = work_ != nullptr;
    if (work_ != nullptr) work_->measure(out);
    return render(out);
  }

 private:
  mutable std::mutex mutex_;
  const Work* work_ = nullptr;
};

void lead(const Settings& settings, kube::Api& api, Shown& shown, const std::function<bool()>& hold) {
  Work work(settings, api);
  work.start();
  shown.set(&work);
  if (!hold()) {
    // Another one may act by now: not a single write more.
    log::room("operator").flush();
    std::_Exit(kLostLease);
  }
  shown.set(nullptr);
  work.stop();
}

void wait_for(std::stop_token stop) {
  std::mutex mutex;
  std::condition_variable_any wake;
  std::unique_lock lock(mutex);
  wake.wait(lock, stop, [] { return false; });
}

}  // namespace

int run(Settings settings, std::stop_token stop) {
  kube::Api api(settings.connection);
  Shown shown;
  std::unique_ptr<StatusServer> server;
  try {
    if (!settings.listen.empty()) {
      StatusServer::Answers answers;
      answers.metrics = [&] { return shown.metrics(); };
      answers.unready = [&] { return shown.unready(); };
      server = std::make_unique<StatusServer>(settings.listen, std::move(answers));
    }
  } catch (const std::exception& error) {
    log::room("operator").error("{}", escaped(error.what()));
    return 2;
  }
  if (!settings.elects) {
    lead(settings, api, shown, [&] { return wait_for(stop), true; });
    return 0;
  }
  Leader leader(api, {settings.space, settings.lease}, settings.identity, settings.lease_times);
  if (!leader.acquire(stop)) return 0;
  lead(settings, api, shown, [&] { return leader.hold(stop); });
  leader.release();
  return 0;
}

}  // namespace driftd::op
