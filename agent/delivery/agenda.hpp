// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "delivery/situation.hpp"

namespace driftd::delivery {

inline constexpr std::size_t kLoaded = 1024;            ///< events that one runner keeps in memory
inline constexpr std::size_t kLoadedBytes = 16u << 20;  ///< payload bytes in memory
inline constexpr std::size_t kWindow = 10'000;          ///< regular events (not exceptions), which hold the cursor back
inline constexpr std::size_t kUnwritten = 1024;   ///< exceptions that wait to be saved; more would be one long write
inline constexpr std::size_t kSaveAt = 64;        ///< a save is due at this number of settled events
inline constexpr std::size_t kMaxAtRisk = 256;    ///< maximum of duplicates after a kill (docs/delivery.md)
inline constexpr std::size_t kReplaysAhead = 32;  ///< events of a replay in memory

/// What a runner can do, one at a time, except that a fetch and a save run beside the others. next_duty() states the
/// precedence.
enum class Duty {
  open,    ///< reads the cursor and the exceptions of the last process
  rewind,  ///< moves the cursor back, once nothing is in flight
  start,
  check,  ///< asks the receiver whether it still has what it acknowledged
  fetch,  ///< reads new events from the store
  load,   ///< reads the payload of due events that are in memory without it
  send,
  plan_replay,   ///< finds the events of a replay that the last process did not finish
  fetch_replay,  ///< reads the next events of the replay
  send_replay,
  save,   ///< stores the cursor, exceptions, dead letters and notes
  sleep,  ///< nothing is due before Agenda::until
  end     ///< the loop is over; only a stopping runner gets it
};
/// Returns a duty as a log line names it, such as `fetch events`.
std::string_view render(Duty duty);

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

/// Returns true if the next save may begin right after one, without waiting for the loop's turn: events that are sent
/// and not saved hold back the next ones.
bool save_follows(const Situation& situation);

}  // namespace driftd::delivery
