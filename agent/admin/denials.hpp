// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>

namespace driftd::admin {

/// Limits the audit lines about refused callers: somebody who may not use the API must not be able to fill the audit
/// log. The first few refusals of a user in a minute get a line each; the others are counted in the user's next line.
/// Core thread.
class Denials {
 public:
  using Clock = std::chrono::steady_clock;

  /// Returns how many refusals of this user had no line since the last one. Empty if this refusal gets no line either.
  std::optional<std::uint64_t> admit(std::int64_t uid, Clock::time_point now);

 private:
  struct User {
    int lines = 0;                ///< in this minute
    std::uint64_t unwritten = 0;  ///< refusals since the user's last line
  };
  Clock::time_point minute_{};          ///< when the current minute began
  int lines_ = 0;                       ///< of all users in this minute
  std::map<std::int64_t, User> users_;  ///< by uid, at most 1024; a user beyond them gets no line in this minute
};

}  // namespace driftd::admin
