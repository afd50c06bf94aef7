// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace driftd::op {

/// How long a lease lasts. The defaults are those of Kubernetes' own controllers.
struct LeaseTimes {
  std::chrono::milliseconds duration{15'000};  ///< others wait this long after the last renewal that they saw
  std::chrono::milliseconds renew{10'000};     ///< a leader that has not renewed for so long stops
  std::chrono::milliseconds retry{2'000};      ///< between two attempts
};

/// Decides who leads, by a Lease of coordination.k8s.io/v1. A pure state machine: the Lease comes in as it was read,
/// what is to be written goes out. Clocks of other machines are not trusted: a lease has expired when it was seen
/// unchanged for its duration, by the clock of this process.
class Election {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using json = nlohmann::json;

  /// `identity` must differ between processes.
  Election(std::string identity, LeaseTimes times) : identity_(std::move(identity)), times_(times) {}

  /// Takes the Lease as it was read at `now`, nullopt if it does not exist. Returns its new `spec` if it is to be
  /// written (created, or replaced under the resourceVersion that was read); nullopt: another one leads.
  std::optional<json> step(const std::optional<json>& lease, Time now, const std::string& wall);
  /// The spec of the last step() was stored. `asked`: when that write was begun.
  void stored(Time asked) { renewed_ = asked; }
  /// True while this process may act: it renewed the lease less than LeaseTimes::renew ago.
  bool leads(Time now) const { return renewed_ && now < *renewed_ + times_.renew; }
  /// When an attempt that begins at `now` must end. One that hangs leaves time for another, and a leader does not wait
  /// for it beyond the time in which it may act.
  Time attempt_until(Time now) const;
  /// True if it led before, and does not any more.
  bool lost(Time now) const { return renewed_ && !leads(now); }
  /// Somebody else has the lease now, in spite of what was renewed.
  bool is_taken() const { return renewed_ && !holder_.empty() && holder_ != identity_; }
  const std::string& holder() const { return holder_; }  ///< as last read; empty: nobody

  /// Returns the spec that gives the lease up, for the next one to take at once.
  json released(const json& spec, const std::string& wall) const;

 private:
  const std::string identity_;
  const LeaseTimes times_;
  std::string seen_, holder_;    ///< the spec as last read, as text
  Time seen_at_{};               ///< when it was first read so
  std::optional<Time> renewed_;  ///< when the last write that was stored began
};

}  // namespace driftd::op
