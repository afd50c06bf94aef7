// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/ports/control.hpp"
#include "engine/extras.hpp"
#include "engine/reason_log.hpp"
#include "engine/sources/foreign_kinds.hpp"

namespace driftd::engine {

struct CycleReport;

/// What the cycles of one backend ended with: how many there were, the last error, and what the last list covered. The
/// runner owns it and records each cycle; its other parts only read it. Core thread only.
class CycleHistory {
 public:
  /// `backend` names it in log lines.
  explicit CycleHistory(std::string backend);

  /// Records a cycle that ran from `start` to `end`.
  void record(const CycleReport& report, Moment::Mono start, Moment end);

  std::uint64_t cycles() const { return cycles_; }  ///< in this process
  /// Empty if the last cycle succeeded.
  const std::string& last_error() const { return last_error_; }
  /// `ok` if the last cycle succeeded, or before the first one.
  Code last_code() const { return last_code_; }
  /// Returns the lines of the last list. Empty before the first one.
  const std::vector<core::Coverage>& coverage() const { return coverage_; }
  /// As a source: returns why its report on `backend`, received at `reported_at`, may no longer be current. Empty if it
  /// is. `lists_registrations` is true if it listed all registrations in its last refresh.
  std::string report_staleness(const std::string& backend, const std::string& place, Moment::Mono reported_at,
                               bool lists_registrations) const;
  /// Fills in what is known of the cycles, except for the coverage.
  void describe(core::BackendView& out) const;

 private:
  /// Marks all kinds as incomplete, because a cycle failed before it listed anything. A cancelled one does not count.
  void invalidate_coverage(const Error& why);

  ReasonLog reasons_log_;
  std::uint64_t cycles_ = 0, failures_ = 0;
  std::string last_error_;
  Code last_code_ = Code::ok;
  Nanos last_complete_ns_ = 0;  ///< end of the last complete cycle
  std::vector<core::Coverage> coverage_;
  RegistrationLines registration_lines_;  ///< of the same cycle as `coverage_`
  Moment::Mono listed_{};                 ///< begin of that cycle
};

}  // namespace driftd::engine
