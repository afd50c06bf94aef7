// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "check/pages.hpp"
#include "check/planted.hpp"
#include "check/running_call.hpp"
#include "check/sink/events.hpp"

namespace driftd::check {

/// How the calls of an instance are made.
struct CallMode {
  InputLayout layout;      ///< where their inputs lie
  bool own_thread = true;  ///< on threads of the pool, under a watchdog; false: on the caller's thread, without one
};

/// One opened instance of a sink. The destructor closes it unless a call never returned.
class SinkInstance {
 public:
  /// Opens an instance. The second is null unless open succeeded.
  static std::pair<CallTrace, std::unique_ptr<SinkInstance>> open(const Subject& subject,
                                                                  const SecretSettings& settings,
                                                                  const CallFaults& faults = {}, CallMode mode = {});
  /// Opens an instance with the subject's settings. Throws CheckNotMade if it cannot be opened.
  static std::unique_ptr<SinkInstance> open_plain(const Subject& subject, CallMode mode = {});
  ~SinkInstance();
  SinkInstance(const SinkInstance&) = delete;
  SinkInstance& operator=(const SinkInstance&) = delete;

  RunningCall start_deliver(const Batch& batch, const CallFaults& faults = {}) const;
  CallTrace deliver(const Batch& batch, const CallFaults& faults = {}) const;
  RunningCall start_probe(const CallFaults& faults = {}) const;
  CallTrace probe(const CallFaults& faults = {}) const;
  CallTrace flush(const CallFaults& faults = {}) const;
  void wake() const;
  /// Throws RuleBroken if close does not return within kGrace. No other function may be called afterwards.
  void close();
  bool has_flush() const;
  const void* query(const std::string& id, std::uint32_t revision) const;
  std::size_t written_behind() const;  ///< bytes of `out` that an open which failed wrote

 private:
  struct Opened;
  explicit SinkInstance(std::shared_ptr<Opened> opened);
  CallTrace call(Function function, const CallFaults& faults, std::uint32_t events, RunningCall::Body body) const;
  RunningCall start(Function function, const CallFaults& faults, std::uint32_t events, RunningCall::Body body) const;
  RunningCall::Body deliver_body(const Batch& batch) const;
  RunningCall::Body probe_body() const;
  std::shared_ptr<Opened> opened_;
};

}  // namespace driftd::check
