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

  /// Call it with the cycle mutex locked. Discovers after a refresh that found something new (`changed`), and as often
  /// as the provider asks.
  Task<void> run(bool changed);
  /// Coverage line of the last discovery. Empty if the backend discovers nothing.
  const std::optional<core::Coverage>& coverage() const { return coverage_; }

 private:
  std::shared_ptr<Context> context_;
  const Ledger& ledger_;
  core::Session& session_;
  std::optional<core::Coverage> coverage_;
  std::chrono::steady_clock::time_point next_{};  ///< when the provider wants to be asked again
};

}  // namespace driftd::engine
