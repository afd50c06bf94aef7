// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "delivery/schedule.hpp"

namespace driftd::delivery {

inline constexpr std::size_t kLoaded = 1024;            ///< events of a runner in memory
inline constexpr std::size_t kLoadedBytes = 16u << 20;  ///< of their payloads
inline constexpr std::size_t kWindow = 10'000;          ///< events that are no exceptions: the cursor waits for them
inline constexpr std::size_t kUnwritten = 1024;         ///< exceptions that a save has to write: more is one long write
inline constexpr std::size_t kSaveAt = 128;             ///< settled events that make a save due
inline constexpr std::size_t kMaxAtRisk = 256;          ///< duplicates after a kill (delivery.md, row "cursor")
inline constexpr std::size_t kReplaysAhead = 32;        ///< events of a replay in memory

/// What a runner can do. One at a time, in this order of precedence.
enum class Duty {
  open,
  rewind,
  start,
  check,
  fetch,
  load,
  send,
  plan_replay,
  fetch_replay,
  send_replay,
  save,
  sleep,
  end
};
std::string_view render(Duty duty);

/// Everything that decides what a runner does next, as plain values.
struct Situation {
  Time now{};
  bool opened = false, started = false, stopping = false, disabled = false, rewinding = false;
  bool exhausted = false;   ///< the store has nothing behind the last fetched event, as far as is known
  bool must_check = false;  ///< nothing may be sent before the sink has looked
  Time store_at{};          ///< the store failed: not before
  Time check_at{}, save_at{}, drain_until{};
  Circuit::State circuit = Circuit::State::closed;
  Time open_until{};
  std::size_t flying = 0, max_in_flight = 0, at_risk = 0, unsaved = 0, loaded = 0, loaded_bytes = 0, plain = 0,
              unwritten = 0;
  bool behind = false;  ///< what lies behind the last fetched event is known, and stays at risk until it is fetched
  bool at_exception_limit = false;  ///< so many wait behind some that fail that memory must not take more
  std::optional<Time> next_loaded, next_unloaded;  ///< when the next event is due, with its payload and without
  bool worth_saving = false;                       ///< a save would change what is stored
  bool save_now = false;
  bool replay_unplanned = false, replay_unfetched = false, replay_sendable = false;
  std::size_t replay_ready = 0, replay_bytes = 0;
  Time replay_at{};

  bool operator==(const Situation&) const = default;
};

/// `until` is for sleep: when something will be due by itself. Everything else that changes a situation wakes the
/// runner.
struct Agenda {
  Duty duty = Duty::sleep;
  Time until{};
};

/// Returns what the runner does now. The only place that decides whether a runner may sleep, so a runner that can do
/// something never does: there is no second opinion that could forget a case.
Agenda next_duty(const Situation& situation);

/// Returns true if an event may leave now, whichever it is.
bool may_send(const Situation& situation);

}  // namespace driftd::delivery
