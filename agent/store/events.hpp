// SPDX-License-Identifier: Apache-2.0
// Event rows: numbered, checked, routed. On the thread that owns the connection.
#pragma once

#include <cstdint>
#include <vector>

#include "store/state.hpp"

namespace driftd::store {

/// Gives the event its id, seq, sequence and recorded time, writes it and its routes. In a transaction.
Result<core::StoredEvent> insert_event(SqliteStore::State& state, const core::EventDraft& draft);
/// The same for an event of the store itself: routed by Settings::route, without the sink that it is about.
Status insert_own_event(SqliteStore::State& state, core::AgentEvent event, const std::string& about_sink = {});

/// First 20 characters of the lower-case base32 of SHA-256.
std::string resource_hash(const std::string& key);

/// Columns of EventPage, for a table or alias called `e`.
#define DRIFTD_EVENT_COLUMNS                                                                                    \
  "e.seq, e.id, e.sequence, e.recorded_ns, e.agent_event, e.key, e.backend, e.backend_type, e.source, e.what, " \
  "e.cluster, e.provider, e.resource, e.type, e.crc, e.payload, e.incarnation, e.routed"
inline constexpr int kEventColumns = 18;

/// Events as read, and the rows among them whose checksum was wrong.
struct EventPage {
  std::vector<core::StoredEvent> events;
  std::vector<std::int64_t> bad;
};
/// Takes the row in; false: its checksum is wrong and it is in `bad`.
bool read_event(const Statement& row, EventPage& page);
/// Steps through `query` until `limit` good events are read, or the one that makes `bytes` of payload full.
Result<EventPage> read_events(Statement& query, std::size_t limit, std::size_t bytes = SIZE_MAX);

/// Moves rows with a wrong checksum to the quarantine, settles their routes as dropped and writes a `corrupt` event for
/// each. A row that is gone already is passed over. In a transaction.
Status quarantine(SqliteStore::State& state, const std::vector<std::int64_t>& seqs);
/// The good events of a page, after its bad ones are in quarantine.
Task<Result<std::vector<core::StoredEvent>>> quarantine_bad(StatePtr state, Result<EventPage> page);

/// One route: where it stands. seq ≤ low-water without exception: acknowledged.
struct Outstanding {
  std::int64_t sink = 0;
  std::string name;
  bool dead = false;
};
/// The sinks that have not settled `seq`, dead letters included.
Result<std::vector<Outstanding>> outstanding_of(Connection& db, std::int64_t seq);
/// Removes an event's routes and exceptions; those outstanding count as dropped.
Status drop_routes(Connection& db, std::int64_t seq, const std::vector<Outstanding>& outstanding);

}  // namespace driftd::store
