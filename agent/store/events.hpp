// SPDX-License-Identifier: Apache-2.0
// Event rows: numbering, checksums, routes. Runs on the thread that owns the connection.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "store/state.hpp"

namespace driftd::store {

/// Gives an event its id, seq, sequence and recorded time, and writes it with its routes. To be called in a
/// transaction.
Result<core::StoredEvent> insert_event(SqliteStore::State& state, const core::EventDraft& draft);
/// Does the same for events that follow each other, with fewer statements.
Result<std::vector<core::StoredEvent>> insert_events(SqliteStore::State& state,
                                                     std::span<const core::EventDraft> drafts);
/// Does the same for an event of the store itself, routed by Settings::route but not to the sink that it is about.
Status insert_notice(SqliteStore::State& state, core::AgentEvent event, const std::string& about_sink = {});
/// The same for a fault, which stands in the log, too.
Status insert_own_event(SqliteStore::State& state, core::AgentEvent event, const std::string& about_sink = {});

/// Returns the first 20 characters of the lower-case base32 of the key's SHA-256.
std::string resource_hash(const std::string& key);

/// Columns of EventPage, for a table or alias called `e`.
#define DRIFTD_EVENT_COLUMNS                                                                                    \
  "e.seq, e.id, e.sequence, e.recorded_ns, e.agent_event, e.key, e.backend, e.backend_type, e.source, e.what, " \
  "e.cluster, e.provider, e.resource, e.type, e.crc, e.payload, e.incarnation, e.routed"
inline constexpr int kEventColumns = 18;
/// The same for an event that a route leads to. Its row may be missing: retention deletes both, so the disk lost it.
#define DRIFTD_ROUTED_COLUMNS                                                                                   \
  "r.seq, e.id, e.sequence, e.recorded_ns, e.agent_event, e.key, e.backend, e.backend_type, e.source, e.what, " \
  "e.cluster, e.provider, e.resource, e.type, e.crc, e.payload, e.incarnation, e.routed"

/// Events that were read, and the seqs of rows whose checksum was wrong or that are missing.
struct EventPage {
  std::vector<core::StoredEvent> events;
  std::vector<std::int64_t> bad;
};
/// Adds a row to the page. Returns false if its checksum is wrong, or if it is missing; its seq is then in `bad`.
bool read_event(const Statement& row, EventPage& page);
/// Reads from `query` until there are `limit` good events, or until their payload reaches `bytes`.
Result<EventPage> read_events(Statement& query, std::size_t limit, std::size_t bytes = SIZE_MAX);

/// Moves rows with a wrong checksum to the quarantine, settles their routes and those of missing rows as dropped, and
/// writes a `corrupt` event for each. Skips what was settled so before. To be called in a transaction.
Status quarantine(SqliteStore::State& state, const std::vector<std::int64_t>& seqs);
/// Puts the bad events of a page in quarantine and returns the good ones.
Task<Result<std::vector<core::StoredEvent>>> quarantine_bad(StatePtr state, Result<EventPage> page);

/// A route that its sink has not settled, or that is a dead letter. A seq ≤ low-water without an exception is
/// acknowledged.
struct Outstanding {
  std::int64_t sink = 0;
  std::string name;
  bool dead = false;
};
/// Returns the sinks that have not settled `seq`, including dead letters.
Result<std::vector<Outstanding>> outstanding_of(Connection& db, std::int64_t seq);
/// Removes an event's routes and exceptions. Outstanding ones count as dropped for this reason (sinks.hpp). Returns the
/// sinks that had settled it.
Result<std::vector<std::int64_t>> drop_routes(Connection& db, std::int64_t seq,
                                              const std::vector<Outstanding>& outstanding, std::string_view reason);

}  // namespace driftd::store
