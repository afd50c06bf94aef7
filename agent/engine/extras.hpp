// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "core/judge/judge.hpp"
#include "core/ports/store.hpp"

namespace driftd::engine {

/// One moment on both clocks.
struct Moment {
  using Mono = std::chrono::steady_clock::time_point;
  Nanos wall = 0;
  Mono mono{};
  static Moment of(const Clock& clock) { return {clock.wall(), clock.mono()}; }

  /// Returns when the request of an answer was sent. The answer came at `now`, to a call that began at `began`; the
  /// provider gives the time as `observed_ns` of the wall clock. If that clock was set meanwhile, only the begin of the
  /// call is known, and that is returned.
  static Mono asked_at(Nanos observed_ns, const Moment& began, const Moment& now);
  /// The same for a page of a watch. If the clock was set meanwhile, returns `now`.
  static Mono received_at(Nanos observed_ns, const Moment& before, const Moment& now);
};

/// One resource and what was read of it.
struct ResourceReading {
  core::ResourceId id;
  core::Reading outcome;  ///< present, absent or unknown
  /// When it was requested; a reading that was requested later and is already applied is not overwritten.
  Moment::Mono asked{};
  std::optional<std::string> upgraded{};  ///< the stored baseline, converted to the current schema revision
};

/// What a commit carries beside judged resources.
struct CommitExtras {
  std::optional<std::string> cursor, watch_cursor;   ///< empty: unchanged
  std::vector<std::string> established;              ///< kinds that have their baseline now
  std::optional<core::BackendRow> row;               ///< replaces the backend's row
  std::vector<core::EventDraft> events;              ///< beside those of the judged resources
  std::vector<core::DeclarationWrite> declarations;  ///< declared by this source; bodies are not sealed yet
  std::vector<core::AuditEntry> audit;               ///< lines of the audit log
  std::vector<core::Enforcement> enforcements;       ///< steps of operations
  std::vector<core::EnforcementStop> stops;          ///< set or lifted
  std::optional<std::string> link;                   ///< hash of the link that a decision came by, used up with it
  Nanos link_used_ns = 0;                            ///< when it was used
  /// The rows of the judgement are written even if nothing of them changed, so that whoever judged them as they were
  /// before meets a conflict.
  bool binds = false;
  bool empty() const {
    return !cursor && !watch_cursor && established.empty() && !row && events.empty() && declarations.empty() &&
           audit.empty() && enforcements.empty() && stops.empty();
  }
};

}  // namespace driftd::engine
