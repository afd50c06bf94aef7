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

/// One moment by both clocks.
struct Moment {
  using Mono = std::chrono::steady_clock::time_point;
  Nanos wall = 0;
  Mono mono{};
  static Moment of(const Clock& clock) { return {clock.wall(), clock.mono()}; }

  /// When a request was sent that its provider says was sent at `observed_ns`, in an answer that came now to a call
  /// that began at `began`. The provider tells it by the wall clock: where that was set meanwhile, only the call's
  /// begin is known.
  static Mono asked_at(Nanos observed_ns, const Moment& began, const Moment& now);
  /// The same of a page that a watch gave; where the clock was set, it was received now.
  static Mono received_at(Nanos observed_ns, const Moment& before, const Moment& now);
};

/// One resource and what was seen of it.
struct ResourceReading {
  core::ResourceId id;
  core::Reading outcome;
  Moment::Mono asked{};  ///< when it was asked for: what was asked for later and is applied already is not overwritten
  std::optional<std::string> upgraded{};  ///< the stored baseline in the form of the current schema revision
};

/// What else a commit carries beside judged resources.
struct CommitExtras {
  std::optional<std::string> cursor, watch_cursor;
  std::vector<std::string> established;
  std::optional<core::BackendRow> row;
  std::vector<core::EventDraft> events;
  std::vector<core::DeclarationWrite> declarations;  ///< of this source; bodies as they came
  std::vector<core::AuditEntry> audit;
  bool empty() const {
    return !cursor && !watch_cursor && established.empty() && !row && events.empty() && declarations.empty();
  }
};

}  // namespace driftd::engine
