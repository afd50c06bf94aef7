// SPDX-License-Identifier: Apache-2.0
#include "store/events.hpp"

#include <algorithm>
#include <set>

#include "base/log.hpp"
#include "proto/codec.hpp"
#include "store/checksums.hpp"

namespace driftd::store {
namespace {

void append_part(std::string& out, std::string_view part) {
  std::uint64_t size = part.size();
  out.append(reinterpret_cast<const char*>(&size), sizeof size);
  out.append(part);
}

/// `routed` is absent in rows of older versions.
std::uint32_t checksum(const core::StoredEvent& event, const std::optional<std::string>& routed) {
  std::string bytes;
  bytes.reserve(event.payload.size() + 512);
  for (const std::uint64_t number :
       {event.stamp.sequence, static_cast<std::uint64_t>(event.stamp.recorded_ns),
        static_cast<std::uint64_t>(event.agent_event), static_cast<std::uint64_t>(event.type)}) {
    bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
  }
  for (const auto* part : {&event.stamp.id, &event.key, &event.backend, &event.backend_type, &event.source, &event.what,
                           &event.cluster, &event.provider, &event.resource, &event.payload}) {
    append_part(bytes, *part);
  }
  if (const std::uint64_t incarnation = event.stamp.incarnation; incarnation != 0) {  // older rows have none
    bytes.append(reinterpret_cast<const char*>(&incarnation), sizeof incarnation);
  }
  if (routed) append_part(bytes, *routed);
  return crc32c(bytes);
}

/// Hybrid logical clock: 52 bits of milliseconds and a counter of 12 bits; never goes back, also when the clock does.
std::uint64_t tick(SqliteStore::State& state, Nanos now) {
  const auto wall = static_cast<std::uint64_t>(std::max<Nanos>(now, 0) / 1'000'000) << 12;
  state.hlc = std::max(state.hlc + 1, wall);
  return state.hlc;
}

std::string event_id(const std::string& key, std::uint64_t hlc) {
  char clock[17];
  std::snprintf(clock, sizeof clock, "%016llx", static_cast<unsigned long long>(hlc));
  return resource_hash(key) + "-" + clock;
}

Result<std::uint64_t> next_sequence(Connection& db, const core::BackendEvent& event) {
  auto update = db.statement("UPDATE backend SET sequence = sequence + 1, " DRIFTD_UNSIGN(
      DRIFTD_CRC_BACKEND) " WHERE uid = ? RETURNING sequence, crc IS NULL");
  DRIFTD_TRY(const bool found, update.bind(event.backend_uid).next());
  if (!found) {
    return fail(Code::not_found, "event " + event.what + " of backend '" + event.backend_name +
                                     "': the store has no uid '" + event.backend_uid + "'; register it first");
  }
  if (update.integer(1) == 0) return fail(wrong_checksum("the row of backend " + event.backend_name));
  return static_cast<std::uint64_t>(update.integer(0));
}

Result<std::uint64_t> next_sequence(Connection& db, const core::AgentEvent&) {
  auto update = db.statement(
      "UPDATE meta SET value = value + 1, crc = driftd_crc(key, value + 1) WHERE key = 'agent_sequence' AND crc "
      "IS " DRIFTD_CRC_META " RETURNING value");
  DRIFTD_TRY(const bool found, update.next());
  if (!found) return fail(Code::corrupt, "store: meta has no agent_sequence; restore the store from a backup");
  return static_cast<std::uint64_t>(update.integer(0));
}

std::string key_of(const core::BackendEvent& event) {
  return event.backend_uid + "/" + (event.resource ? core::render(*event.resource) : "");
}
std::string key_of(const core::AgentEvent& event) { return "agent/" + event.agent; }

template <class Event>
Result<core::StoredEvent> numbered(SqliteStore::State& state, const Event& event) {
  core::EventStamp stamp;
  DRIFTD_TRY(stamp.sequence, next_sequence(*state.db, event));
  stamp.recorded_ns = state.clock.wall();
  stamp.id = event_id(key_of(event) + state.salt, tick(state, stamp.recorded_ns));
  stamp.incarnation = state.reached.incarnation;
  return proto::to_stored_event(event, stamp);
}

Status write_event(Connection& db, core::StoredEvent& event, const std::string& routed) {
  DRIFTD_CHECK(
      db.statement("INSERT INTO event (id, sequence, recorded_ns, agent_event, key, backend, backend_type, source, "
                   "what, cluster, provider, resource, type, crc, payload, incarnation, routed) VALUES "
                   "(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)")
          .bind(event.stamp.id, event.stamp.sequence, event.stamp.recorded_ns, event.agent_event ? 1 : 0, event.key,
                event.backend, event.backend_type, event.source, event.what, event.cluster, event.provider,
                event.resource, static_cast<int>(event.type), checksum(event, routed), Blob{event.payload},
                event.stamp.incarnation, routed)
          .run());
  event.stamp.seq = db.last_rowid();
  return {};
}

/// Returns the id of an open sink. Creates a sink that was never opened; it starts with this event.
Result<std::int64_t> sink_for(Connection& db, const std::string& name, std::int64_t seq) {
  auto query = db.statement("SELECT id, " DRIFTD_WHOLE(DRIFTD_CRC_SINK) " FROM sink WHERE name = ? AND closed = 0");
  DRIFTD_TRY(const bool found, query.bind(name).next());
  if (found && query.integer(1) == 0) return fail(wrong_checksum("the delivery mark of sink " + name));
  if (found) return query.integer(0);
  auto insert = db.statement(
      "INSERT INTO sink (name, low_water) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET "
      "closed = 0, low_water = ?2, crc = NULL RETURNING id");
  DRIFTD_TRY(const bool made, insert.bind(name, seq - 1).next());
  if (!made) return fail(Code::internal, "store: sink " + name + " was not written");
  return insert.integer(0);
}

/// Returns the sinks of the event that will get `seq`, without duplicates.
Result<std::set<std::int64_t>> sinks_for(Connection& db, const std::vector<std::string>& names, std::int64_t seq) {
  std::set<std::int64_t> out;
  for (const auto& name : names) {
    DRIFTD_TRY(const auto sink, sink_for(db, name, seq));
    out.insert(sink);
  }
  return out;
}

Status route(Connection& db, std::int64_t seq, const std::set<std::int64_t>& sinks) {
  for (const auto sink : sinks) {
    DRIFTD_CHECK(
        db.statement("INSERT INTO route (sink, seq, crc) VALUES (?1, ?2, driftd_crc(?1, ?2))").bind(sink, seq).run());
    DRIFTD_CHECK(db.statement("UPDATE sink SET emitted = emitted + 1, " DRIFTD_UNSIGN(DRIFTD_CRC_SINK) " WHERE id = ?")
                     .bind(sink)
                     .run());
  }
  return {};
}

std::string joined(const std::set<std::int64_t>& sinks) {
  std::string out;
  for (const auto sink : sinks) out += (out.empty() ? "" : ",") + std::to_string(sink);
  return out;
}

Result<std::vector<std::string>> open_sinks(Connection& db) {
  std::vector<std::string> out;
  auto query = db.statement("SELECT name FROM sink WHERE closed = 0");
  while (true) {
    DRIFTD_TRY(const bool more, query.next());
    if (!more) return out;
    out.push_back(query.text(0));
  }
}

}  // namespace

std::string resource_hash(const std::string& key) {
  static constexpr char kDigits[] = "abcdefghijklmnopqrstuvwxyz234567";
  const std::string hash = sha256(key);
  std::string out;
  for (unsigned bit = 0; bit < 100; bit += 5) {
    const auto high = static_cast<unsigned char>(hash[bit / 8]);
    const auto low = static_cast<unsigned char>(hash[bit / 8 + 1]);
    const unsigned window = static_cast<unsigned>(high) << 8 | low;
    out.push_back(kDigits[window >> (11 - bit % 8) & 31]);
  }
  return out;
}

Result<core::StoredEvent> insert_event(SqliteStore::State& state, const core::EventDraft& draft) {
  DRIFTD_TRY(auto event,
             std::visit([&](const auto& alternative) { return numbered(state, alternative); }, draft.event));
  DRIFTD_TRY(const auto sinks, sinks_for(*state.db, draft.sinks, state.newest_seq + 1));
  DRIFTD_CHECK(write_event(*state.db, event, joined(sinks)));
  state.newest_seq = event.stamp.seq;
  DRIFTD_CHECK(route(*state.db, event.stamp.seq, sinks));
  return event;
}

Status insert_own_event(SqliteStore::State& state, core::AgentEvent event, const std::string& about_sink) {
  event.agent = state.settings.agent;
  event.cluster = state.settings.cluster;
  event.at_ns = state.clock.wall();
  std::vector<std::string> sinks;
  if (state.settings.route) {
    sinks = state.settings.route(event);
  } else {
    DRIFTD_TRY(sinks, open_sinks(*state.db));
  }
  std::erase(sinks, about_sink);
  log::room("store").error("{}: {}", event.what, event.message);
  DRIFTD_TRY(const auto stored, insert_event(state, {std::move(event), std::move(sinks)}));
  log::room("store").debug("recorded as event {}", stored.stamp.id);
  return {};
}

bool read_event(const Statement& row, EventPage& page) {
  core::StoredEvent event;
  event.stamp = {row.text(1), row.integer(0), static_cast<std::uint64_t>(row.integer(2)), row.integer(3),
                 static_cast<std::uint64_t>(row.integer(16))};
  event.agent_event = row.integer(4) != 0;
  std::string* const parts[] = {&event.key,  &event.backend, &event.backend_type, &event.source,
                                &event.what, &event.cluster, &event.provider,     &event.resource};
  int column = 5;
  for (auto* part : parts) *part = row.text(column++);
  event.type = static_cast<core::ChangeType>(row.integer(13));
  event.payload = row.text(15);
  if (row.integer(14) != static_cast<std::int64_t>(checksum(event, row.maybe_text(17)))) {
    page.bad.push_back(event.stamp.seq);
    return false;
  }
  page.events.push_back(std::move(event));
  return true;
}

Result<EventPage> read_events(Statement& query, std::size_t limit, std::size_t bytes) {
  EventPage page;
  std::size_t read = 0;
  while (page.events.size() < limit && read < bytes) {
    DRIFTD_TRY(const bool more, query.next());
    if (!more) break;
    if (read_event(query, page)) read += page.events.back().payload.size();
  }
  return page;
}

}  // namespace driftd::store
