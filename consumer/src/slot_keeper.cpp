// SPDX-License-Identifier: Apache-2.0
#include "slot_keeper.hpp"

#include <algorithm>
#include <exception>
#include <limits>
#include <utility>

#include "slot_state.hpp"

namespace driftd::consumer {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kFirstPoll{1'000}, kMaxPoll{5'000}, kProvisional{10'000};

/// A slot is tried for as long as the application runs. When it is tried again is the keeper's, which knows the
/// circuits of the backends and how many slots share one; the controller's own retries are for a fault of this library
/// alone.
controller::Settings settings_of_controller(const RunnerSettings& settings) {
  controller::Settings out;
  out.workers = std::min(settings.max_parallel_connects, static_cast<int>(settings.slots.size()));
  out.max_retry_attempts = std::numeric_limits<int>::max();
  out.retry_first = milliseconds(1);
  out.retry_max = settings.retry_max;
  return out;
}

controller::Log log_of_controller(const Log& log) {
  return [log](controller::LogLevel level, const std::string& text) {
    log(level == controller::LogLevel::error ? LogLevel::error : LogLevel::warning, text);
  };
}

/// Equal but for the credentials.
bool same_place(const Backend& a, const Backend& b) {
  return a.type == b.type && a.endpoint == b.endpoint && a.config_json == b.config_json;
}

}  // namespace

SlotKeeper::SlotKeeper(const RunnerSettings& settings, SlotBinder& binder, BackendCache& cache, PatternMetrics& metrics,
                       Log log)
    : settings_(settings),
      binder_(binder),
      cache_(cache),
      metrics_(metrics),
      log_(std::move(log)),
      random_(std::random_device{}()),
      controller_("slots", settings_of_controller(settings), clock_, *this, log_of_controller(log_), random_()) {
  const CircuitBreaker closed(settings.breaker_failures, Backoff(settings.breaker_first, settings.breaker_max));
  for (const auto& binding : settings.slots) {
    slots_.push_back(std::make_unique<State>(binding, Backoff(settings.retry_first, settings.retry_max)));
    breakers_.emplace(binding.backend, closed);
    for (const auto& alternate : binding.alternates) breakers_.emplace(alternate, closed);
  }
}

SlotKeeper::~SlotKeeper() { stop(); }

void SlotKeeper::start() {
  {
    const std::lock_guard lock(mutex_);
    for (const auto& state : slots_) note(*state, kReconnect, milliseconds(0));
  }
  controller_.start();
}

void SlotKeeper::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  controller_.stop();
  for (const auto& state : slots_) {
    std::shared_ptr<Slot> last;
    {
      const std::lock_guard lock(mutex_);
      last = std::exchange(state->live, nullptr);
    }
    if (last) disconnect(*state, last);
  }
}

Status SlotKeeper::wait_until_bound(milliseconds max_wait) {
  std::unique_lock lock(mutex_);
  const auto unbound = [this] {
    return std::find_if(slots_.begin(), slots_.end(), [](const auto& state) { return !state->live; });
  };
  if (changed_.wait_for(lock, max_wait, [&] { return stopping_ || unbound() == slots_.end(); }) && !stopping_)
    return {};
  const auto first = unbound();
  const std::string name = first == slots_.end() ? "" : (*first)->binding.slot;
  const std::string why = first == slots_.end() || (*first)->last_error.empty()
                              ? "failed to bind slot " + name + ": not connected"
                              : (*first)->last_error;
  return fail(Code::unavailable, why + " (tried for " + std::to_string(max_wait.count()) + " ms)");
}

// The work, on the controller's threads.

SlotKeeper::State& SlotKeeper::state_of(const std::string& slot) const {
  return **std::find_if(slots_.begin(), slots_.end(), [&](const auto& state) { return state->binding.slot == slot; });
}

controller::Outcome SlotKeeper::reconcile(const controller::Key& key, controller::Context&) {
  State& state = state_of(key.name);
  unsigned needs = kNothing;
  {
    const std::lock_guard lock(mutex_);
    needs = state.doing = std::exchange(state.needs, kNothing);
  }
  if (needs == kNothing) return controller::Success{};
  Retry retry;
  try {
    retry = attend(state, needs);
  } catch (const std::exception& error) {  // nothing that was noted is lost
    const std::lock_guard lock(mutex_);
    state.doing = kNothing;
    state.needs |= needs;
    return controller::Requeue{error.what()};
  }
  const std::lock_guard lock(mutex_);
  state.doing = kNothing;
  state.needs |= retry.needs;
  if (retry.needs == kNothing) return controller::Success{};
  if (retry.at > clock_.now()) return controller::RequeueAfter{retry.at - clock_.now()};
  controller_.add(key);
  return controller::Success{};
}

/// Slots live as long as the keeper.
controller::Outcome SlotKeeper::finalize(const controller::Key&, controller::Context&) { return controller::Success{}; }

/// A description that is provisional is loaded again until it is not.
SlotKeeper::Retry SlotKeeper::attend(State& state, unsigned needs) {
  Retry out = attend_once(state, needs);
  const std::lock_guard lock(mutex_);
  if (state.live == nullptr || !state.config.backend.provisional || (out.needs & (kReload | kReconnect)) != 0)
    return out;
  const auto wait = kProvisional / 2 + milliseconds(random_() % static_cast<std::uint64_t>(kProvisional.count() / 2));
  const Time at = out.needs == kNothing ? Clock::now() + wait : std::min(out.at, Clock::now() + wait);
  return {out.needs | kReload, at};
}

void SlotKeeper::note_provisional(State& state, bool provisional) {
  const std::lock_guard lock(mutex_);
  state.config.backend.provisional = provisional;
}

SlotKeeper::Retry SlotKeeper::attend_once(State& state, unsigned needs) {
  bool connected = false;
  {
    const std::lock_guard lock(mutex_);
    connected = state.live != nullptr && deleted_.count(state.backend) == 0;
  }
  if (!connected || (needs & kReconnect) != 0) {
    const Retry retry = reconnect(state, true);
    // It connected, perhaps with the value that the credential had before its event.
    if (retry.needs == kNothing && (needs & kCredentials) != 0) return {kCredentials, Clock::now() + kFirstPoll};
    return retry;
  }
  Retry out;
  if ((needs & (kReload | kCredentials)) != 0) out = refresh(state, needs);
  if ((needs & kImprove) == 0) return out;
  const Retry improved = reconnect(state, false);
  if (out.needs == kNothing) return improved;
  if (improved.needs != kNothing) out = {out.needs | improved.needs, std::min(out.at, improved.at)};
  return out;
}

/// Asks the source again and does what the answer needs: nothing, other credentials, or another connection. While a
/// state is running, only this thread changes its `backend`, `config` and `live`.
SlotKeeper::Retry SlotKeeper::refresh(State& state, unsigned needs) {
  auto config = binder_.config_of(state.binding.slot, state.backend);
  if (!config) {
    const Retry out{needs & (kReload | kCredentials), Clock::now() + next_wait(state)};
    report(state, LogLevel::warning,
           "failed to load the config of slot " + state.binding.slot + ": " + config.error().message);
    return out;
  }
  if (!same_place(config->backend, state.config.backend)) return {kReconnect, Clock::now()};
  if (config->credentials != state.config.credentials)
    return rotate(state, std::move(*config), (needs & kCredentials) != 0);
  note_provisional(state, config->backend.provisional);
  report(state, LogLevel::debug, "");
  if ((needs & kCredentials) == 0) return {};
  if (Clock::now() - rotated_at(state) >= settings_.credential_patience) {
    log_(LogLevel::info, "the credential of slot " + state.binding.slot + " has not changed since its event");
    return {};
  }
  cache_.invalidate(state.backend);  // the value is not there yet: a mounted Secret follows later than its event
  return {kCredentials, Clock::now() + std::min(next_wait(state), kMaxPoll)};
}

/// `announced`: an event about a credential is the cause.
SlotKeeper::Retry SlotKeeper::rotate(State& state, SlotConfig config, bool announced) {
  Status done;
  try {
    done = state.live->update_credentials(config);
  } catch (const std::exception& error) {
    done = fail(Code::internal, std::string("the slot threw: ") + error.what());
  }
  if (!done) {
    log_(LogLevel::warning, "Hot credential reload failed, reconnecting slot " + state.binding.slot +
                                " and all others of backend " + state.backend + ": " + done.error().message);
    const std::lock_guard lock(mutex_);
    note_backend(state.backend, kReconnect, kNothing);
    return {};
  }
  if (announced) metrics_.credential_rotated(Clock::now() - rotated_at(state));
  log_(LogLevel::info, "Successfully rotated credentials for slot " + state.binding.slot);
  const std::lock_guard lock(mutex_);
  state.config = std::move(config);
  state.last_error.clear();
  state.backoff.reset();
  return {};
}

milliseconds SlotKeeper::next_wait(State& state) {
  const std::lock_guard lock(mutex_);
  return state.backoff.next(random_);
}

SlotKeeper::Time SlotKeeper::rotated_at(const State& state) const {
  const std::lock_guard lock(mutex_);
  return state.rotated_at;
}

/// Shows `error` in the status (empty: none) and logs it, unless it is the same as before.
void SlotKeeper::report(State& state, LogLevel level, const std::string& error) {
  {
    const std::lock_guard lock(mutex_);
    if (state.last_error == error) return;
    state.last_error = error;
    changed_.notify_all();
  }
  if (!error.empty()) log_(level, error);
}

/// The backends that a slot may use now, the best first.
std::vector<std::string> SlotKeeper::candidates(const State& state) const {
  std::vector<std::string> out = {state.binding.backend};
  out.insert(out.end(), state.binding.alternates.begin(), state.binding.alternates.end());
  std::erase_if(out, [this](const std::string& name) { return deleted_.count(name) != 0; });
  std::stable_partition(out.begin(), out.end(), [this](const std::string& name) { return down_.count(name) == 0; });
  return out;
}

bool SlotKeeper::grant(const std::string& backend) {
  const std::lock_guard lock(mutex_);
  return breaker(backend).allow(Clock::now());
}

/// Connects to the first candidate that can be; if not `forced`, only to one that is better than the current one.
SlotKeeper::Retry SlotKeeper::reconnect(State& state, bool forced) {
  std::vector<std::string> names;
  {
    const std::lock_guard lock(mutex_);
    names = candidates(state);
    if (!forced) names.erase(std::find(names.begin(), names.end(), state.backend), names.end());
  }
  Error last{Code::unavailable, "failed to bind slot " + state.binding.slot + ": the circuit of backend " +
                                    state.binding.backend + " is open"};
  for (const auto& name : names) {
    if (!grant(name)) continue;
    auto bound = binder_.bind_slot(state.binding.slot, name, state.binding.slot_type);
    if (bound) {
      put(state, name, std::move(*bound));
      const std::lock_guard lock(mutex_);
      // An alternate is in use although the better one is not known to be down: look again.
      const auto now = candidates(state);  // empty if all were deleted meanwhile; that was noted
      if (now.empty() || now.front() == name) return {};
      return {kImprove, Clock::now() + settings_.breaker_first + spread(name)};
    }
    const std::lock_guard lock(mutex_);
    breaker(name).failed(Clock::now(), random_);
    last = bound.error();
  }
  if (names.empty() && !forced) return {};
  return after_failures(state, names, last);
}

SlotKeeper::Retry SlotKeeper::after_failures(State& state, const std::vector<std::string>& tried, Error error) {
  std::shared_ptr<Slot> lost;
  Retry out;
  {
    const std::lock_guard lock(mutex_);
    if (tried.empty()) {
      error.message =
          "failed to bind slot " + state.binding.slot + ": backend " + state.binding.backend + " was deleted";
      lost = std::exchange(state.live, nullptr);
    } else {
      const bool improving =
          state.live != nullptr && std::find(tried.begin(), tried.end(), state.backend) == tried.end();
      out = {improving ? unsigned{kImprove} : unsigned{kReconnect}, Clock::now() + state.backoff.next(random_)};
      Time allowed = Time::max();
      for (const auto& name : tried) {
        allowed = std::min(allowed, breaker(name).open() ? breaker(name).retry_at() + spread(name) : Time::min());
      }
      out.at = std::max(out.at, allowed);
    }
  }
  report(state, LogLevel::error, error.message);
  if (lost) disconnect(state, lost);
  return out;
}

/// The new connection is in use before the old one ends.
void SlotKeeper::put(State& state, const std::string& backend, BoundSlot bound) {
  std::shared_ptr<Slot> former;
  bool first = false;
  {
    const std::lock_guard lock(mutex_);
    breaker(backend).succeeded();
    first = state.connected_at == Time{};
    former = std::exchange(state.live, std::move(bound.slot));
    state.backend = backend;
    state.config = std::move(bound.config);
    state.connected_at = Clock::now();
    state.last_error.clear();
    state.backoff.reset();
    changed_.notify_all();
  }
  if (!first) metrics_.reconnected(backend);
  log_(LogLevel::info, std::string(first ? "Bound slot " : "Successfully reconnected slot ") + state.binding.slot +
                           " to backend " + backend);
  if (former) disconnect(state, former);
}

void SlotKeeper::disconnect(const State& state, const std::shared_ptr<Slot>& connection) {
  try {
    connection->disconnect();
  } catch (const std::exception& error) {
    log_(LogLevel::error, "disconnect of slot " + state.binding.slot + " threw: " + error.what());
  }
}

}  // namespace driftd::consumer
