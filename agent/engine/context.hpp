// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/task.hpp"
#include "core/event/event.hpp"
#include "core/ports/control.hpp"
#include "core/ports/metrics.hpp"
#include "core/ports/store.hpp"
#include "core/redact.hpp"

namespace driftd::engine {

class SourceHub;
struct EnforcementSwitch;

/// What all backends of one agent share. It outlives the engine. A reload replaces `routes` as a whole.
struct Context {
  asio::any_io_executor core;  ///< one thread; everything in this room runs on it
  asio::any_io_executor diff;  ///< a pool for pure work
  core::Store& store;
  const Clock& clock;
  core::Metrics& metrics;
  core::RedactionKey store_key;  ///< of the installation; digests in the store are made with it
  std::string agent, cluster;    ///< names for events
  std::shared_ptr<const std::vector<core::Route>> routes;     ///< which sinks get which events; never null
  std::function<void()> committed;                            ///< wakes the relay
  SourceHub* sources = nullptr;                               ///< set by the engine, which outlives every backend
  std::shared_ptr<const core::RedactionKeys> keys = nullptr;  ///< set by the engine
  /// If true, a mass deletion waits for a person's approval (semantics 4). False where nobody can approve: then each
  /// missing resource is a deletion.
  bool asks_about_mass_deletions = true;
  std::shared_ptr<EnforcementSwitch> enforcement = nullptr;  ///< null: this process puts nothing back
  std::function<void()> first_cycle_ended{};                 ///< called for each backend, once; may be empty
};

}  // namespace driftd::engine
