// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "backend_cache.hpp"
#include "backoff.hpp"
#include "circuit_breaker.hpp"
#include "controller/controller.hpp"
#include "driftd/consumer/slot_binder.hpp"
#include "log.hpp"
#include "metrics.hpp"

namespace driftd::consumer {

/// Keeps each slot connected to the best backend that it may use. Events only note what a slot needs; a controller,
/// whose keys are the slots, has it done on a few threads and tries until it is done: what is noted is not lost by a
/// failure, and many events of a backend that come together cost one attempt. Any thread, except start() and stop().
class SlotKeeper final : private controller::Reconciler {
 public:
  using Time = std::chrono::steady_clock::time_point;

  SlotKeeper(const RunnerSettings& settings, SlotBinder& binder, BackendCache& cache, PatternMetrics& metrics, Log log);
  ~SlotKeeper() override;
  void start();  ///< connects all slots on threads of its own
  /// Returns when every slot has a connection, or the error of one that has none after `max_wait`.
  Status wait_until_bound(std::chrono::milliseconds max_wait);
  void stop();

  void credential_rotated(const std::string& backend);
  void updated(const std::string& backend);
  void endpoint_changed(const std::string& backend);
  void health_changed(const std::string& backend, bool down);
  void deleted(const std::string& backend);
  void created(const std::string& backend);
  void resync();  ///< every description may have changed, and no health is known
  void report_broken(const std::string& slot, const std::shared_ptr<Slot>& connection);

  std::shared_ptr<Slot> slot(const std::string& name) const;
  std::vector<SlotStatus> status() const;

 private:
  /// What a slot needs. Several at once; the larger includes the smaller.
  enum Need : unsigned { kNothing = 0, kImprove = 1, kCredentials = 2, kReload = 4, kReconnect = 8 };
  struct State;
  struct Retry {
    unsigned needs = kNothing;
    Time at{};
  };

  controller::Outcome reconcile(const controller::Key& key, controller::Context& context) override;
  controller::Outcome finalize(const controller::Key& key, controller::Context& context) override;
  Retry attend(State& state, unsigned needs);
  Retry attend_once(State& state, unsigned needs);
  void note_provisional(State& state, bool provisional);
  Retry refresh(State& state, unsigned needs);
  Retry rotate(State& state, SlotConfig config, bool announced);
  Retry reconnect(State& state, bool forced);
  std::chrono::milliseconds next_wait(State& state);
  Time rotated_at(const State& state) const;
  void report(State& state, LogLevel level, const std::string& error);
  Retry after_failures(State& state, const std::vector<std::string>& tried, Error error);
  void put(State& state, const std::string& backend, BoundSlot bound);
  void disconnect(const State& state, const std::shared_ptr<Slot>& connection);
  bool grant(const std::string& backend);
  // These are called with mutex_ held.
  void note(State& state, unsigned need, std::chrono::milliseconds delay);
  /// Notes `need` for the slots that use the backend, and `otherwise` for those that could.
  void note_backend(const std::string& backend, unsigned need, unsigned otherwise);
  std::chrono::milliseconds spread(const std::string& backend);
  State& state_of(const std::string& slot) const;
  std::vector<std::string> candidates(const State& state) const;
  CircuitBreaker& breaker(const std::string& backend) { return breakers_.at(backend); }

  const RunnerSettings& settings_;
  SlotBinder& binder_;
  BackendCache& cache_;
  PatternMetrics& metrics_;
  const Log log_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<State>> slots_;
  std::map<std::string, CircuitBreaker> breakers_;  ///< of every backend that a slot may use
  std::set<std::string> down_, deleted_;
  std::mt19937_64 random_;
  bool stopping_ = false;
  const controller::SystemClock clock_;
  controller::Controller controller_;  ///< its keys are the names of the slots
};

}  // namespace driftd::consumer
