// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/task.hpp"
#include "core/event.hpp"
#include "core/ports/control.hpp"
#include "core/ports/metrics.hpp"
#include "core/ports/store.hpp"
#include "core/redact.hpp"

namespace driftd::engine {

/// A source's word on the registration of another backend: a record or tombstone of kind `registration`.
struct Word {
  std::string source;  ///< its name
  core::Observation record;
  std::shared_ptr<const core::KindSchema> schema;
  std::string schema_text;
};

/// What all backends of one agent share. Outlives the engine. `routes` is replaced whole on reload.
struct Context {
  asio::any_io_executor core;
  asio::any_io_executor diff;
  core::Store& store;
  const Clock& clock;
  core::Metrics& metrics;
  core::RedactionKey store_key;
  std::string agent, cluster;
  std::shared_ptr<const std::vector<core::Route>> routes;
  std::function<void()> committed;  ///< wakes the relay
  /// What sources declare of this backend was committed anew. Set by the engine.
  std::function<void(const std::string& backend)> declared;
  /// What a source discovered: backends come and go in the registry. Returns its line of coverage. Set by the engine.
  std::function<Task<core::Coverage>(std::string source, core::DiscoverOutcome)> discovered;
  /// What a source says of another backend's registration. Returns why it does not count; empty: it does. Set by the engine.
  std::function<std::string(Word)> spoken;
  /// Why nothing of a backend's kind can be held against a declaration; empty: it can. Set by the engine.
  std::function<std::string(const std::string& backend, const std::string& kind)> undeclarable;
};

}  // namespace driftd::engine
