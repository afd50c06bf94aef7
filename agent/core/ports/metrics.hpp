// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "core/drift.hpp"

namespace driftd::core {

/// Counters of the agent's work. States that can be read at any time (health, open drifts, cursors, backlog) are not
/// reported here: admin reads them from Control and Reader on each request. [any thread], never blocks on I/O.
class Metrics {
 public:
  using Seconds = std::chrono::duration<double>;
  virtual ~Metrics() = default;
  /// A cycle of a backend ended after `took`. `ok` if at least one kind was listed completely and nothing failed.
  virtual void observe_refresh(const std::string& backend, Seconds took, bool ok) = 0;
  /// A drift was opened.
  virtual void drift_detected(const std::string& backend, ChangeClass cls) = 0;
  /// Judging gave the store so many events to commit. Each is then counted by event_published() or withdrawn().
  virtual void event_drafted(const std::string& backend, std::uint64_t count) = 0;
  /// A commit of so many drafts ended, with whatever outcome: those that were not counted by now are lost.
  virtual void drafts_ended(const std::string& backend, std::uint64_t count) = 0;
  /// A commit failed with so many events: what they were about is judged again.
  virtual void event_withdrawn(const std::string& backend, std::uint64_t count) = 0;
  /// An event was committed to the outbox; `what` as in its subject: `credentials.rotated`.
  virtual void event_published(const std::string& backend, const std::string& what) = 0;
  /// Records arrived; `unchanged` of them had a known digest and were not parsed.
  virtual void records(const std::string& backend, std::uint64_t received, std::uint64_t unchanged) = 0;
  /// Changes did not become an event; `reason` as in Judgement::suppressed (judge.hpp).
  virtual void suppressed(const std::string& backend, const std::string& reason, std::uint64_t count) = 0;
  /// An attempt to deliver an event ended; `outcome`: delivered | retry_event | retry_sink | refused | permanent |
  /// disabled. `age` counts from the event's commit.
  virtual void observe_delivery(const std::string& sink, const std::string& outcome, Seconds age) = 0;
  /// Length and limit of a queue; `name`: `store`, `diff`, `delivery:ops`.
  virtual void queue(const std::string& name, std::uint64_t depth, std::uint64_t bound) = 0;
  /// A backend left the registry, so its series end.
  virtual void forget(const std::string& backend) = 0;
};

/// Counts nothing, for a single pass (`driftd once`), whose metrics nobody reads.
class NoMetrics final : public Metrics {
  void observe_refresh(const std::string&, Seconds, bool) override {}
  void drift_detected(const std::string&, ChangeClass) override {}
  void event_drafted(const std::string&, std::uint64_t) override {}
  void drafts_ended(const std::string&, std::uint64_t) override {}
  void event_withdrawn(const std::string&, std::uint64_t) override {}
  void event_published(const std::string&, const std::string&) override {}
  void records(const std::string&, std::uint64_t, std::uint64_t) override {}
  void suppressed(const std::string&, const std::string&, std::uint64_t) override {}
  void observe_delivery(const std::string&, const std::string&, Seconds) override {}
  void queue(const std::string&, std::uint64_t, std::uint64_t) override {}
  void forget(const std::string&) override {}
};

}  // namespace driftd::core
