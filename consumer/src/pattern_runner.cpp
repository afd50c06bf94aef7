// SPDX-License-Identifier: Apache-2.0
#include "driftd/consumer/pattern_runner.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <mutex>
#include <set>

#include "backend_cache.hpp"
#include "checkpoint.hpp"
#include "event_follower.hpp"
#include "log.hpp"
#include "metrics.hpp"
#include "nats_link.hpp"
#include "runner_settings.hpp"
#include "slot_keeper.hpp"

namespace driftd::consumer {
namespace {

using std::chrono::nanoseconds;
using std::chrono::system_clock;

/// The clocks of this machine and of the server may differ by so much. Earlier events only cost a look.
constexpr std::chrono::minutes kStartMargin{5};
constexpr const char* kAgents = "driftd.agent";

const char* name_of(ChangeType type) {
  constexpr const char* kNames[] = {
      "UNSPECIFIED",        "CREATED",        "UPDATED",          "DELETED",
      "CREDENTIAL_ROTATED", "HEALTH_CHANGED", "ENDPOINT_CHANGED", "CONFIG_DRIFT_DETECTED"};
  return kNames[static_cast<int>(type)];
}

void log_to_stderr(LogLevel level, const std::string& text) {
  if (level == LogLevel::debug) return;
  const char* const name = level == LogLevel::info ? "info" : level == LogLevel::warning ? "warning" : "error";
  std::fprintf(stderr, "driftd consumer: %s: %s\n", name, text.c_str());
}

}  // namespace

struct PatternRunner::Parts {
  Parts(RunnerSettings given, std::shared_ptr<BackendSource> from, std::shared_ptr<SlotFactory> makes,
        Resolvers resolve, std::unique_ptr<Checkpoint> memory)
      : settings(std::move(given)),
        log(settings.log ? settings.log : Log(log_to_stderr)),
        subscription(subscription_of(settings.pattern, settings.slots)),
        source(std::move(from)),
        factory(std::move(makes)),
        resolvers(std::move(resolve)),
        checkpoint(std::move(memory)),
        metrics(settings.pattern),
        cache(*source),
        binder(
            cache, resolvers, *factory, [this](Backend& backend) { amend(backend); }, settings.resolve_timeout),
        keeper(settings, binder, cache, metrics, log) {
    for (const auto& name : subscription.backend_names) metrics.add_backend(name);
  }

  void amend(Backend& backend);
  Status handle(const BackendEvent& event);
  void act(const BackendEvent& event);
  void remember_endpoint(const BackendEvent& event);
  void resync();
  void follow(std::int64_t since_ns);
  void receive(const StreamMessage& message);
  void receive_of_agent(const StreamMessage& message);

  const RunnerSettings settings;
  const Log log;
  const Subscription subscription;
  const std::shared_ptr<BackendSource> source;
  const std::shared_ptr<SlotFactory> factory;
  const Resolvers resolvers;
  const std::unique_ptr<Checkpoint> checkpoint;
  PatternMetrics metrics;
  BackendCache cache;
  SlotBinder binder;
  SlotKeeper keeper;
  std::unique_ptr<NatsLink> link;
  std::vector<std::unique_ptr<EventFollower>> followers;
  mutable std::mutex followers_mutex;  ///< status() may be asked while start() runs
  std::mutex handling;                 ///< one event at a time
  std::atomic<bool> started = false;
};

/// An endpoint that an event announced replaces the one that the source had then. Once the source says something else,
/// the source is newer.
void PatternRunner::Parts::amend(Backend& backend) {
  if (source->follows_events()) return;
  const BackendMemory memory = checkpoint->memory(backend.name);
  if (memory.endpoint.empty()) return;
  if (memory.endpoint_fresh) {
    checkpoint->change(backend.name, [&](BackendMemory& kept) {
      kept.endpoint_from = backend.endpoint;
      kept.endpoint_fresh = false;
    });
    const Status saved = checkpoint->save();
    if (!saved) log(LogLevel::warning, saved.error().message);
  } else if (memory.endpoint_from != backend.endpoint) {
    return;
  }
  backend.endpoint = memory.endpoint;
}

void PatternRunner::Parts::remember_endpoint(const BackendEvent& event) {
  if (event.endpoint.empty() || source->follows_events()) return;
  checkpoint->change(event.backend, [&](BackendMemory& kept) {
    if (event.order < kept.endpoint_order) return;
    kept.endpoint = event.endpoint;
    kept.endpoint_order = event.order;
    kept.endpoint_fresh = true;
  });
}

Status PatternRunner::Parts::handle(const BackendEvent& event) {
  const auto& names = subscription.backend_names;
  if (!std::binary_search(names.begin(), names.end(), event.backend)) {
    return fail(Code::not_found, "no slot found for backend " + event.backend);
  }
  const std::lock_guard lock(handling);
  metrics.event_received(event.backend);
  // What is not acted on needs no memory.
  const auto& types = subscription.event_types;
  if (std::find(types.begin(), types.end(), event.type) == types.end()) return {};
  const auto verdict = checkpoint->judge(event);
  if (verdict != Checkpoint::Verdict::fresh) {
    log(LogLevel::debug,
        "event " + event.id + " of backend " + event.backend +
            (verdict == Checkpoint::Verdict::old ? " is older than what was applied" : " was applied before"));
    return {};
  }
  log(LogLevel::info,
      std::string("Received backend change event: ") + name_of(event.type) + " for backend " + event.backend);
  act(event);
  checkpoint->applied(event);
  return {};
}

/// What is noted for the slots comes after the cache was emptied, so that no slot takes what was said before.
void PatternRunner::Parts::act(const BackendEvent& event) {
  cache.invalidate(event.backend);
  switch (event.type) {
    case ChangeType::created:
      return keeper.created(event.backend);
    case ChangeType::updated:
      remember_endpoint(event);
      return keeper.updated(event.backend);
    case ChangeType::deleted:
      log(LogLevel::error, "backend " + event.backend + " was deleted; its slots use an alternate, or nothing");
      return keeper.deleted(event.backend);
    case ChangeType::credential_rotated:
      return keeper.credential_rotated(event.backend);
    case ChangeType::endpoint_changed:
      remember_endpoint(event);
      return keeper.endpoint_changed(event.backend);
    case ChangeType::health_changed: {
      bool newest = true;
      checkpoint->change(event.backend, [&](BackendMemory& kept) {
        newest = event.order >= kept.health_order;
        if (!newest) return;
        kept.health = event.health;
        kept.health_order = event.order;
      });
      if (newest) keeper.health_changed(event.backend, event.health == "down");
      return;
    }
    case ChangeType::unspecified:
    case ChangeType::config_drift_detected:
      return;
  }
}

void PatternRunner::Parts::resync() {
  cache.clear();
  for (const auto& name : subscription.backend_names) {
    checkpoint->change(name, [](BackendMemory& kept) { kept.health.clear(); });
  }
  keeper.resync();
}

void PatternRunner::Parts::receive(const StreamMessage& message) {
  auto event = parse_backend_event(message.body);
  if (!event) {
    log(LogLevel::error, "message on " + message.subject + ": " + event.error().message + "; it is skipped");
    return;
  }
  if (event->order == EventOrder{}) event->order = message.order;
  if (event->id.empty()) event->id = message.id;
  if (!message.key.empty()) event->key = message.key;
  const Status done = handle(*event);
  if (!done) log(LogLevel::error, "event " + event->id + ": " + done.error().message);
}

/// `driftd.agent.<agent>.gap` and `.incarnation`: events are missing, or the agent's store went back.
void PatternRunner::Parts::receive_of_agent(const StreamMessage& message) {
  if (!message.subject.ends_with(".gap") && !message.subject.ends_with(".incarnation")) return;
  BackendEvent event;
  event.id = message.id;
  event.backend = kAgents;
  event.key = message.subject;
  event.order = message.order;
  if (checkpoint->judge(event) != Checkpoint::Verdict::fresh) return;
  log(LogLevel::warning, message.subject + ": events may be missing; every backend is loaded again");
  resync();
  checkpoint->applied(event);
}

void PatternRunner::Parts::follow(std::int64_t since_ns) {
  const auto start = [&](const std::string& name, const std::string& subject, EventFollower::Handler handler) {
    Following following{name, subject, durable_name(settings.pattern, settings.instance, name), since_ns,
                        std::chrono::duration_cast<nanoseconds>(settings.absence)};
    const std::lock_guard lock(followers_mutex);
    followers.push_back(
        std::make_unique<EventFollower>(*link, *checkpoint, std::move(following), std::move(handler), log));
  };
  for (const auto& name : subscription.backend_names) {
    start(name, subject_of_backend(name), [this](const StreamMessage& message) { receive(message); });
  }
  start(kAgents, "driftd.agent.>", [this](const StreamMessage& message) { receive_of_agent(message); });
}

Result<std::unique_ptr<PatternRunner>> PatternRunner::create(RunnerSettings settings,
                                                             std::shared_ptr<BackendSource> source,
                                                             std::shared_ptr<SlotFactory> factory,
                                                             Resolvers resolvers) {
  const Status good = check_settings(settings);
  if (!good) return tl::unexpected<Error>(good.error());
  if (!source || !factory)
    return fail(Code::invalid, "a PatternRunner needs a source of backends and a factory of slots");
  std::string note;
  auto checkpoint = Checkpoint::open(settings.checkpoint, settings.pattern + "/" + settings.instance, note);
  if (!checkpoint) return tl::unexpected<Error>(checkpoint.error());
  auto parts = std::make_unique<Parts>(std::move(settings), std::move(source), std::move(factory), std::move(resolvers),
                                       std::move(*checkpoint));
  if (!note.empty()) parts->log(LogLevel::warning, note);
  if (!parts->settings.nats.servers.empty()) {
    auto link = NatsLink::open(parts->settings.nats, parts->settings.pattern);
    if (!link) return tl::unexpected<Error>(link.error());
    parts->link = std::move(*link);
  }
  return std::unique_ptr<PatternRunner>(new PatternRunner(std::move(parts)));
}

PatternRunner::PatternRunner(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
PatternRunner::~PatternRunner() { stop(); }

Status PatternRunner::start(const std::function<Status()>& process) {
  if (parts_->started.exchange(true)) return fail(Code::invalid, "the PatternRunner was started before");
  const auto since = system_clock::now() - kStartMargin;
  for (const auto& name : parts_->subscription.backend_names) {
    if (parts_->checkpoint->memory(name).health == "down") parts_->keeper.health_changed(name, true);
  }
  parts_->keeper.start();
  Status bound = parts_->keeper.wait_until_bound(parts_->settings.start_timeout);
  if (!bound) {
    stop();
    return bound;
  }
  if (parts_->link) parts_->follow(std::chrono::duration_cast<nanoseconds>(since.time_since_epoch()).count());
  return process ? process() : Status{};
}

void PatternRunner::stop() {
  for (const auto& follower : parts_->followers) follower->stop();
  if (parts_->link) {
    if (parts_->link->connected()) natsConnection_FlushTimeout(parts_->link->connection(), 1'000);  // acknowledgements
    parts_->link->close();
  }
  parts_->keeper.stop();
  const Status saved = parts_->checkpoint->save();
  if (!saved) parts_->log(LogLevel::warning, saved.error().message);
}

std::shared_ptr<Slot> PatternRunner::slot(const std::string& name) const { return parts_->keeper.slot(name); }

void PatternRunner::report_broken(const std::string& name, const std::shared_ptr<Slot>& connection) {
  parts_->keeper.report_broken(name, connection);
}

Status PatternRunner::handle_backend_event(const BackendEvent& event) {
  const Status done = parts_->handle(event);
  return done ? parts_->checkpoint->save() : done;
}

void PatternRunner::resync() { parts_->resync(); }

RunnerStatus PatternRunner::status() const {
  RunnerStatus out;
  out.slots = parts_->keeper.status();
  const std::lock_guard lock(parts_->followers_mutex);
  for (const auto& follower : parts_->followers) out.subscriptions.push_back(follower->status());
  return out;
}

std::string PatternRunner::metrics() const { return parts_->metrics.render(); }

}  // namespace driftd::consumer
