// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/ports/control.hpp"
#include "core/ports/sink.hpp"
#include "delivery/relay_settings.hpp"

namespace driftd::delivery {

class SinkRunner;

/// Carries committed events from the outbox to the sinks. Each sink has its own runner, so that a dead sink slows no
/// other. Core thread only. Lifetime: outbox and clock must outlive it, and stop() must have returned before it is
/// destroyed.
class Relay {
 public:
  Relay(asio::any_io_executor core, core::Outbox& outbox, const Clock& clock, RelaySettings settings = {});
  ~Relay();
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  /// Adds a sink before start(). `type` (nats, webhook, …) is shown to people.
  void add_sink(std::string name, std::string type, std::unique_ptr<core::Sink> sink);
  /// Closes the cursors of stored sinks that were not added, then starts all runners. A stored sink that still has
  /// pending events and is not in drop_pending is an orphan: its events are kept, it is logged as an error and shown as
  /// `orphaned`. A sink that cannot start is retried for ever and is not an error.
  Task<Status> start();
  /// Adds and starts a sink of a reloaded configuration. It gets events from the next one on.
  Task<Status> start_sink(std::string name, std::string type, std::unique_ptr<core::Sink> sink);
  /// Stops one sink like stop(), but drains for a second at most. Its events and its cursor stay in the store:
  /// start_sink() continues there.
  /// Returns `not_found` if it does not run. Another sink may have its name once this has returned.
  Task<Status> stop_sink(std::string name);
  /// Stops a sink if it runs, gives up what waits for it (a `gap` event reports that) and closes its cursor.
  Task<Status> remove_sink(std::string name);
  bool has(const std::string& name) const { return runners_.count(name) != 0; }  ///< false for an orphan
  /// Sink::use_secrets() of a sink. `not_found` if there is no such sink.
  Status use_secrets(const std::string& name, std::vector<std::string> secrets);
  /// Sink::former_secrets_unused() of a sink that exists.
  Task<void> former_secrets_unused(std::string name);
  /// Drains for RelaySettings::drain at most, saves the cursors and stops the sinks, which may take 5 s more.
  Task<void> stop();
  /// Returns true if some sink did not stop in time, so that a thread may still be in it.
  bool abandoned() const { return abandoned_; }
  /// To be called after each commit: wakes the runners.
  void wake();
  /// To be called every few seconds: calls SinkRunner::watch() of each runner.
  void watch();

  std::vector<core::SinkView> views() const;  ///< of all runners, then of the orphans
  /// Returns `not_found` if there is no such sink.
  Task<Result<std::int64_t>> replay(core::Control::Replay request);
  /// `verb` is `replay` or `drop`, else `invalid`. Returns how many dead letters it applied to.
  Task<Result<std::int64_t>> dead_letter(std::string sink, std::string verb, std::vector<std::int64_t> seqs);

 private:
  Task<void> wait_until_stopped(std::shared_ptr<SinkRunner> runner);
  /// Returns `not_found` with the known sinks. An orphan has no runner.
  Result<std::shared_ptr<SinkRunner>> runner(const std::string& name) const;

  std::shared_ptr<SinkRunnerContext> context_;  ///< shared with the runners
  std::map<std::string, std::shared_ptr<SinkRunner>> runners_;
  std::map<std::string, std::string> orphans_;  ///< stored sinks without a runner, and what is pending for them
  bool abandoned_ = false;
  bool stopping_ = false;  ///< start_sink() is refused with `cancelled`
};

}  // namespace driftd::delivery
