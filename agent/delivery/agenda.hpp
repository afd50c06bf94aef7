// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "delivery/schedule.hpp"

namespace driftd::delivery {

inline constexpr std::size_t kLoaded = 1024;            ///< events that one runner keeps in memory
inline constexpr std::size_t kLoadedBytes = 16u << 20;  ///< payload bytes in memory
inline constexpr std::size_t kWindow = 10'000;          ///< regular events (not exceptions), which hold the cursor back
inline constexpr std::size_t kUnwritten = 1024;   ///< exceptions that wait to be saved; more would be one long write
inline constexpr std::size_t kSaveAt = 128;       ///< a save is due at this number of settled events
inline constexpr std::size_t kMaxAtRisk = 256;    ///< maximum of duplicates after a kill (docs/delivery.md)
inline constexpr std::size_t kReplaysAhead = 32;  ///< events of a replay in memory

/// What a runner can do, one at a time. next_duty() states the precedence.
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
  bool exhausted = false;   ///< nothing newer than the last fetched event is known in the store
  bool must_check = false;  ///< nothing may be sent before Sink::check() has succeeded
  Time store_at{};          ///< after a store failure: the time of the next attempt
  Time check_at{}, save_at{}, drain_until{};
  Circuit::State circuit = Circuit::State::closed;
  Time open_until{};
  std::size_t flying = 0, max_in_flight = 0, at_risk = 0, unsaved = 0, loaded = 0, loaded_bytes = 0, plain = 0,
              unwritten = 0;
  bool behind = false;  ///< exceptions newer than the last fetched event exist; they stay at risk until it passes them
  bool at_exception_limit = false;  ///< too many events wait behind failing ones; memory must not take more
  std::optional<Time> next_loaded, next_unloaded;  ///< when the next event with, and without, its payload in memory is
                                                   ///< due
  bool worth_saving = false;                       ///< a save would change what is stored
  bool save_now = false;
  bool replay_unplanned = false, replay_unfetched = false, replay_sendable = false;
  std::size_t replay_ready = 0, replay_bytes = 0;
  Time replay_at{};

  bool operator==(const Situation&) const = default;
};

/// `until` belongs to Duty::sleep: the time at which something becomes due by itself. Every other change of the
/// situation wakes the runner.
struct Agenda {
  Duty duty = Duty::sleep;
  Time until{};
};

/// Returns what the runner does now. This is the only place that decides whether a runner may sleep, so that no second
/// opinion can forget a case: a runner that has something to do never sleeps.
Agenda next_duty(const Situation& situation);

/// Returns true if the situation allows sending an event now.
bool may_send(const Situation& situation);

}  // namespace driftd::delivery
