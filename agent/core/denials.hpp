// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace driftd::core {

/// Limits the audit lines about refused callers: somebody who may not use an API must not be able to fill the audit
/// log. The first few refusals of a user in a minute get a line each; the others are counted in the user's next line.
/// Core thread.
class Denials {
 public:
  using Clock = std::chrono::steady_clock;

  /// `caller` names one user, certificate or address, `actor` is its name for people. Returns how many refusals of it
  /// had no line since the last one. Empty if this refusal gets no line either.
  std::optional<std::uint64_t> admit(const std::string& caller, Clock::time_point now, const std::string& actor = {});
  /// Refusals that have no line yet, of a caller who was refused nothing since.
  struct Unwritten {
    std::string caller, actor;
    std::uint64_t count = 0;
    friend bool operator==(const Unwritten&, const Unwritten&) = default;
  };
  /// Returns those of the minutes that are over, with `all` also those of this one. They are counted from 0 again.
  std::vector<Unwritten> take_unwritten(Clock::time_point now, bool all);

 private:
  struct User {
    int lines = 0;                ///< in this minute
    std::uint64_t unwritten = 0;  ///< refusals since the user's last line
    std::string actor;            ///< name of the user at the last refusal
  };
  Clock::time_point minute_{};         ///< when the current minute began
  int lines_ = 0;                      ///< of all users in this minute
  std::map<std::string, User> users_;  ///< at most 1024; one beyond them gets no line in this minute
};

}  // namespace driftd::core
