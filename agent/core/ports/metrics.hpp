// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "core/drift.hpp"

namespace driftd::core {

/// What the line counts while it works. States that can be read at any time (health, open drifts, cursors, backlog) are
/// not told here: admin reads them from Control and Reader when it is asked. [any thread], never blocks on I/O.
class Metrics {
 public:
  using Seconds = std::chrono::duration<double>;
  virtual ~Metrics() = default;
  /// A cycle of a backend ended after `took`; ok: at least one kind was listed whole and nothing failed.
  virtual void observe_refresh(const std::string& backend, Seconds took, bool ok) = 0;
  /// A drift was opened.
  virtual void drift_detected(const std::string& backend, ChangeClass cls) = 0;
  /// An event was committed to the outbox; `what` as in its subject: `credentials.rotated`.
  virtual void event_published(const std::string& backend, const std::string& what) = 0;
  /// Records that arrived, and how many of them the digest settled without parsing.
  virtual void records(const std::string& backend, std::uint64_t received, std::uint64_t unchanged) = 0;
  /// Changes that became no event: `ignore-rule`, `standing`, `unsettled`, `equivalent`.
  virtual void suppressed(const std::string& backend, const std::string& reason, std::uint64_t count) = 0;
  /// An attempt to deliver ended; `outcome`: delivered | retry_event | retry_sink | refused | permanent | disabled.
  /// `age` is from the event's commit.
  virtual void observe_delivery(const std::string& sink, const std::string& outcome, Seconds age) = 0;
  /// Fill and bound of a queue by name: `store`, `diff`, `delivery:ops`.
  virtual void queue(const std::string& name, std::uint64_t depth, std::uint64_t bound) = 0;
  /// A backend left the registry: its series end.
  virtual void forget(const std::string& backend) = 0;
};

/// Counts nothing: a single pass has nobody to tell.
class NoMetrics final : public Metrics {
  void observe_refresh(const std::string&, Seconds, bool) override {}
  void drift_detected(const std::string&, ChangeClass) override {}
  void event_published(const std::string&, const std::string&) override {}
  void records(const std::string&, std::uint64_t, std::uint64_t) override {}
  void suppressed(const std::string&, const std::string&, std::uint64_t) override {}
  void observe_delivery(const std::string&, const std::string&, Seconds) override {}
  void queue(const std::string&, std::uint64_t, std::uint64_t) override {}
  void forget(const std::string&) override {}
};

}  // namespace driftd::core
