// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "delivery/sink_runner.hpp"

namespace driftd::delivery {

/// Carries committed events from the outbox to the sinks: one runner per sink, so that a dead sink slows no other one.
/// Core thread only. Lifetime: the outbox and the clock outlive it; stop() ends before it is destroyed.
class Relay {
 public:
  Relay(asio::any_io_executor core, core::Outbox& outbox, const Clock& clock, RelaySettings settings = {});
  ~Relay();
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  /// Before start(). `type` is for people: nats, webhook ...
  void add_sink(std::string name, std::string type, std::unique_ptr<core::Sink> sink);
  /// Closes the cursors of sinks that are no longer added, then starts all runners. One that still has pending events
  /// and is not in drop_pending is an orphan: its events are kept, it is named loudly and shown as `orphaned`. A sink
  /// that cannot start is tried again for ever; that is no error.
  Task<Status> start();
  /// A sink that came with a reload: starts with the next event.
  Task<Status> start_sink(std::string name, std::string type, std::unique_ptr<core::Sink> sink);
  bool has(const std::string& name) const { return runners_.count(name) != 0; }
  /// Drains at most RelaySettings::drain, saves the cursors, stops the sinks.
  Task<void> stop();
  /// After a commit.
  void wake();
  /// Every few seconds: names runners that make no progress (SinkRunner::watch).
  void watch();

  std::vector<core::SinkView> views() const;
  /// `not_found`: no such sink.
  Task<Result<std::int64_t>> replay(core::Control::Replay request);
  Task<Result<std::int64_t>> dead_letter(std::string sink, std::string verb, std::vector<std::int64_t> seqs);

 private:
  Result<std::shared_ptr<SinkRunner>> runner(const std::string& name) const;

  std::shared_ptr<SinkRunnerContext> context_;
  std::map<std::string, std::shared_ptr<SinkRunner>> runners_;
  std::map<std::string, std::string> orphans_;  ///< sinks of the store without a runner, and what they still have
  bool stopping_ = false;
};

}  // namespace driftd::delivery
