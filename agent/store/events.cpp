// SPDX-License-Identifier: Apache-2.0
#include "store/events.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "base/log.hpp"
#include "proto/codec.hpp"
#include "store/checksums.hpp"

namespace driftd::store {
namespace {

/// `routed` is absent in rows of older versions.
std::uint32_t checksum(const core::StoredEvent& event, const std::optional<std::string>& routed) {
  std::uint32_t crc = 0;
  const auto add_number = [&crc](std::uint64_t number) {
    crc = crc32c({reinterpret_cast<const char*>(&number), sizeof number}, crc);
  };
  const auto add_part = [&](std::string_view part) {
    add_number(part.size());
    crc = crc32c(part, crc);
  };
  for (const std::uint64_t number :
       {event.stamp.sequence, static_cast<std::uint64_t>(event.stamp.recorded_ns),
        static_cast<std::uint64_t>(event.agent_event), static_cast<std::uint64_t>(event.type)}) {
    add_number(number);
  }
  for (const auto* part : {&event.stamp.id, &event.key, &event.backend, &event.backend_type, &event.source, &event.what,
                           &event.cluster, &event.provider, &event.resource, &event.payload}) {
    add_part(*part);
  }
  if (event.stamp.incarnation != 0) add_number(event.stamp.incarnation);  // older rows have none
  if (routed) add_part(*routed);
  return crc;
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

Result<std::uint64_t> last_sequence(Connection& db, const core::BackendEvent& event) {
  auto query = db.statement("SELECT sequence, " DRIFTD_WHOLE(DRIFTD_CRC_BACKEND) " FROM backend WHERE uid = ?");
  DRIFTD_TRY(const bool found, query.bind(event.backend_uid).next());
  if (!found) {
    return fail(Code::not_found, "event " + event.what + " of backend '" + event.backend_name +
                                     "': the store has no uid '" + event.backend_uid + "'; register it first");
  }
  if (query.integer(1) == 0) return fail(wrong_checksum("the row of backend " + event.backend_name));
  return static_cast<std::uint64_t>(query.integer(0));
}

Result<std::uint64_t> next_agent_sequence(Connection& db) {
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

/// Returns the id of a sink that gets an event. Creates a sink that was never opened; it starts with this event. Empty
/// for one that was removed since the event's routes were resolved: only register_sink() opens it again, otherwise its
/// events would wait for a runner that does not exist.
Result<std::optional<std::int64_t>> sink_for(Connection& db, const std::string& name, std::int64_t seq) {
  auto query = db.statement("SELECT id, closed, " DRIFTD_WHOLE(DRIFTD_CRC_SINK) " FROM sink WHERE name = ?");
  DRIFTD_TRY(const bool found, query.bind(name).next());
  if (found && query.integer(2) == 0) return fail(wrong_checksum("the delivery mark of sink " + name));
  if (found && query.integer(1) != 0) return std::nullopt;
  if (found) return query.integer(0);
  auto insert = db.statement("INSERT INTO sink (name, low_water) VALUES (?, ?) RETURNING id");
  DRIFTD_TRY(const bool made, insert.bind(name, seq - 1).next());
  if (!made) return fail(Code::internal, "store: sink " + name + " was not written");
  return insert.integer(0);
}

std::string joined(const std::set<std::int64_t>& sinks) {
  std::string out;
  for (const auto sink : sinks) out += (out.empty() ? "" : ",") + std::to_string(sink);
  return out;
}

/// Writes events that follow each other in one transaction. The rows of their backends and sinks are read once and
/// written once, by finish(): if a page of the database changes early and late in a large transaction, SQLite writes
/// the checksums of all pages between again.
class EventWriter {
 public:
  explicit EventWriter(SqliteStore::State& state) : state_(state), db_(*state.db) {}

  Result<core::StoredEvent> write(const core::EventDraft& draft) {
    DRIFTD_TRY(auto event, std::visit([&](const auto& alternative) { return numbered(alternative); }, draft.event));
    DRIFTD_TRY(const auto sinks, sinks_for(draft.sinks));
    DRIFTD_CHECK(write_event(db_, event, joined(sinks)));
    state_.newest_seq = event.stamp.seq;
    for (const auto sink : sinks) DRIFTD_CHECK(route(event.stamp.seq, sink));
    return event;
  }

  Status finish() {
    for (const auto& [uid, sequence] : sequences_) {
      DRIFTD_CHECK(db_.statement("UPDATE backend SET sequence = ?, " DRIFTD_UNSIGN(DRIFTD_CRC_BACKEND) " WHERE uid = ?")
                       .bind(sequence, uid)
                       .run());
    }
    for (const auto& [sink, count] : emitted_) {
      DRIFTD_CHECK(
          db_.statement("UPDATE sink SET emitted = emitted + ?, " DRIFTD_UNSIGN(DRIFTD_CRC_SINK) " WHERE id = ?")
              .bind(count, sink)
              .run());
    }
    return {};
  }

 private:
  Result<std::uint64_t> next_sequence(const core::BackendEvent& event) {
    auto known = sequences_.find(event.backend_uid);
    if (known == sequences_.end()) {
      DRIFTD_TRY(const auto last, last_sequence(db_, event));
      known = sequences_.emplace(event.backend_uid, last).first;
    }
    return ++known->second;
  }
  Result<std::uint64_t> next_sequence(const core::AgentEvent&) { return next_agent_sequence(db_); }

  template <class Event>
  Result<core::StoredEvent> numbered(const Event& event) {
    core::EventStamp stamp;
    DRIFTD_TRY(stamp.sequence, next_sequence(event));
    stamp.recorded_ns = state_.clock.wall();
    stamp.id = event_id(key_of(event) + state_.salt, tick(state_, stamp.recorded_ns));
    stamp.incarnation = state_.reached.incarnation;
    return proto::to_stored_event(event, stamp);
  }

  /// Returns the sinks of the next event, without duplicates.
  Result<std::set<std::int64_t>> sinks_for(const std::vector<std::string>& names) {
    std::set<std::int64_t> out;
    for (const auto& name : names) {
      auto known = sinks_.find(name);
      if (known == sinks_.end()) {
        DRIFTD_TRY(const auto sink, sink_for(db_, name, state_.newest_seq + 1));
        known = sinks_.emplace(name, sink).first;
      }
      if (known->second) out.insert(*known->second);
    }
    return out;
  }

  Status route(std::int64_t seq, std::int64_t sink) {
    DRIFTD_CHECK(
        db_.statement("INSERT INTO route (sink, seq, crc) VALUES (?1, ?2, driftd_crc(?1, ?2))").bind(sink, seq).run());
    ++emitted_[sink];
    return {};
  }

  SqliteStore::State& state_;
  Connection& db_;
  std::map<std::string, std::uint64_t> sequences_;            ///< last number given, by uid of the backend
  std::map<std::string, std::optional<std::int64_t>> sinks_;  ///< id by name; empty: it is closed
  std::map<std::int64_t, std::int64_t> emitted_;              ///< number of new events by sink
};

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

Result<std::vector<core::StoredEvent>> insert_events(SqliteStore::State& state,
                                                     std::span<const core::EventDraft> drafts) {
  std::vector<core::StoredEvent> out;
  out.reserve(drafts.size());
  EventWriter writer(state);
  for (const auto& draft : drafts) {
    DRIFTD_TRY(auto event, writer.write(draft));
    out.push_back(std::move(event));
  }
  DRIFTD_CHECK(writer.finish());
  return out;
}

Result<core::StoredEvent> insert_event(SqliteStore::State& state, const core::EventDraft& draft) {
  DRIFTD_TRY(auto events, insert_events(state, {&draft, 1}));
  return std::move(events.front());
}

Status insert_own_event(SqliteStore::State& state, core::AgentEvent event, const std::string& about_sink) {
  log::room("store").error("{}: {}", event.what, event.message);
  return insert_notice(state, std::move(event), about_sink);
}

Status insert_notice(SqliteStore::State& state, core::AgentEvent event, const std::string& about_sink) {
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
  DRIFTD_TRY(const auto stored, insert_event(state, {std::move(event), std::move(sinks)}));
  log::room("store").debug("recorded as event {}", stored.stamp.id);
  return {};
}

bool read_event(const Statement& row, EventPage& page) {
  if (row.is_null(1)) {
    page.bad.push_back(row.integer(0));
    return false;
  }
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
