// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/audit.hpp"

namespace driftd::core {

/// Limits the audit lines about refused callers: somebody who may not use an API must not be able to fill the audit
/// log. The first few refusals of a caller in a minute get a line each; the others are counted in the next line about
/// it. Core thread.
class Denials {
 public:
  using Clock = std::chrono::steady_clock;

  /// Whose refusals are counted together. `key` is one user, certificate or address; the rest is for its lines.
  struct Who {
    std::string key, actor;
    Caller process = {};
  };
  /// Returns how many refusals of this caller had no line since the last one. Empty if this refusal gets no line
  /// either.
  std::optional<std::uint64_t> admit(const Who& who, Clock::time_point now);
  /// Returns a line for each caller whose last refusals have none, but those of the minute that is not over; with `all`
  /// also those. They are counted from 0 again.
  std::vector<AuditEntry> unwritten_lines(Clock::time_point now, Nanos at_ns, bool all);

 private:
  struct User {
    int lines = 0;                ///< in this minute
    std::uint64_t unwritten = 0;  ///< refusals since the caller's last line
    Who who;                      ///< at the last refusal
  };
  Clock::time_point minute_{};         ///< when the current minute began
  int lines_ = 0;                      ///< of all users in this minute
  std::map<std::string, User> users_;  ///< at most 1024; one beyond them gets no line in this minute
};

}  // namespace driftd::core
