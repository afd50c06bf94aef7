// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <optional>

#include "base/task.hpp"
#include "core/ports/control.hpp"

namespace driftd::core {
class Session;
}

namespace driftd::engine {

class Ledger;
struct Context;

/// Asks one backend, as a source, which other backends there are, and passes the answer to the engine. The runner owns
/// it and calls it at the end of a cycle that succeeded. Core thread only.
class BackendDiscovery {
 public:
  /// The references must outlive it.
  BackendDiscovery(std::shared_ptr<Context> context, const Ledger& ledger, core::Session& session);

  using Time = std::chrono::steady_clock::time_point;

  /// Call it with the cycle mutex locked. Discovers after a refresh that found something new (`changed`), after ask(),
  /// and as often as the provider asks.
  Task<void> run(bool changed);
  /// What defines a backend may have changed: run() is due in a moment, so that a burst of changes is one discovery.
  /// Does nothing if the backend discovers no others.
  void ask();
  /// Returns when run() is due because of ask(), without waiting for a cycle. Time::max(): it is not.
  Time due() const { return due_; }
  /// Nothing can be read now: the next cycle does what ask() asked for.
  void leave_to_cycle() { due_ = Time::max(); }
  /// Coverage line of the last discovery. Empty if the backend discovers nothing.
  const std::optional<core::Coverage>& coverage() const { return coverage_; }

 private:
  /// Its plugin offers it, the configuration wants it, and no source discovered this backend itself: unregistering such
  /// a one waits for its cycle while the registry is locked, so locking the registry there would deadlock.
  bool discovers() const;

  std::shared_ptr<Context> context_;
  const Ledger& ledger_;
  core::Session& session_;
  std::optional<core::Coverage> coverage_;
  Time next_{};             ///< when the provider wants to be asked again
  Time due_ = Time::max();  ///< of ask()
  Time::duration took_{};   ///< by the last discovery
  bool asked_ = false;      ///< by ask(), and not discovered since
};

}  // namespace driftd::engine
