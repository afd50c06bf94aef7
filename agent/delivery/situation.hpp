// SPDX-License-Identifier: Apache-2.0
// What a runner's agenda decides on, as plain values: one struct for each part of the runner that reports them.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "delivery/schedule.hpp"

namespace driftd::delivery {

/// Whether a sink can be given events. If several apply, the first one in this order counts.
enum class EndpointState {
  disabled,      ///< it takes nothing until the agent restarts
  circuit_open,  ///< it fails; the next attempt is at EndpointSituation::open_until
  not_started,   ///< Sink::start() has not succeeded yet
  unchecked,     ///< nothing may be sent before Sink::check() has succeeded
  half_open,     ///< it failed and was checked; one event is sent as a probe
  ready
};
std::string_view render(EndpointState state);  ///< for views and log lines

/// What the endpoint allows.
struct EndpointSituation {
  EndpointState state = EndpointState::not_started;
  Time open_until{}, check_at{};  ///< end of the circuit's wait; when it is checked although nothing is wrong
  std::size_t max_in_flight = 0;  ///< by the sink's policy

  bool operator==(const EndpointSituation&) const = default;
};

/// How the runner stands with the store.
struct StoreSituation {
  bool opened = false;     ///< the cursor is open
  bool rewinding = false;  ///< the cursor must be moved back
  bool exhausted = false;  ///< nothing newer than the last fetched event is known in the store
  bool fetching = false;   ///< a fetch is under way
  Time retry_at{};         ///< after a failure of the store: the time of the next attempt

  bool operator==(const StoreSituation&) const = default;
};

/// Which events wait in memory, and when the next one is due.
struct WaitingSituation {
  std::size_t loaded = 0, loaded_bytes = 0;        ///< events with their payload in memory
  std::size_t plain = 0;                           ///< regular events, which hold the cursor back
  std::optional<Time> next_loaded, next_unloaded;  ///< when the next event with, and without, its payload is due
  bool at_exception_limit = false;  ///< too many events wait behind failing ones; memory must not take more
  bool behind = false;  ///< exceptions newer than the last fetched event exist; they stay at risk until it passes them

  bool operator==(const WaitingSituation&) const = default;
};

/// What is not saved yet.
struct SaveSituation {
  bool useful = false;        ///< a save would change what is stored
  bool urgent = false;        ///< it must not wait for `at`
  bool saving = false;        ///< a save is under way
  Time at{};                  ///< when a useful save is due
  std::size_t unsaved = 0;    ///< settled events that a save would clear
  std::size_t unwritten = 0;  ///< exceptions that a save would write
  std::size_t at_risk = 0;    ///< events that would be sent twice after a kill now

  bool operator==(const SaveSituation&) const = default;
};

/// What a replay needs.
struct ReplaySituation {
  bool unplanned = false, unfetched = false;  ///< its events must be found; some are not in memory yet
  std::size_t ready = 0, bytes = 0;           ///< events in memory, and their payload with that of those in flight
  std::optional<Time> next;                   ///< when its next event may be sent; empty if none may

  bool operator==(const ReplaySituation&) const = default;
};

/// Everything that decides what a runner does next.
struct Situation {
  Time now{};
  bool stopping = false;
  Time drain_until{};         ///< if it is stopping: it ends at this time at the latest
  std::size_t in_flight = 0;  ///< events under way without an answer, with those of a replay
  StoreSituation store;
  EndpointSituation endpoint;
  WaitingSituation waiting;
  SaveSituation save;
  ReplaySituation replay;

  bool operator==(const Situation&) const = default;
};

}  // namespace driftd::delivery
