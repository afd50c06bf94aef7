// SPDX-License-Identifier: Apache-2.0
// What was sent about which group of drifts, and silences.
#include "store/audit.hpp"
#include "store/checksums.hpp"
#include "store/events.hpp"
#include "store/fields.hpp"
#include "store/state.hpp"

namespace driftd::store {
namespace {

using States = std::map<std::string, std::string>;

Result<States> read_states(Connection& db) {
  States out;
  auto query = db.statement("SELECT name, state, crc IS driftd_crc(name, state) FROM notification");
  while (true) {
    DRIFTD_TRY(const bool more, query.next());
    if (!more) return out;
    if (query.integer(2) == 0) continue;  // a group whose state is lost is sent once more
    out.emplace(query.text(0), query.text(1));
  }
}

Status write_states(SqliteStore::State& state, const core::NotificationStore::Write& write) {
  Connection& db = *state.db;
  for (const auto& [name, text] : write.states) {
    if (text.empty()) {
      DRIFTD_CHECK(db.statement("DELETE FROM notification WHERE name = ?").bind(name).run());
      continue;
    }
    DRIFTD_CHECK(db.statement("INSERT OR REPLACE INTO notification (name, state, crc) VALUES (?1, ?2, "
                              "driftd_crc(?1, ?2))")
                     .bind(name, text)
                     .run());
  }
  DRIFTD_TRY([[maybe_unused]] const auto events, insert_events(state, write.events));
  return {};
}

constexpr std::int64_t kMaxSilences = 1'000;
constexpr Nanos kCorrection = 3'600'000'000'000;  // corrections of a clock stay below this

Result<std::vector<core::Silence>> read_silences(Connection& db, Nanos now) {
  std::vector<core::Silence> out;
  auto query = db.statement(
      "SELECT id, matcher, author, reason, created_ns, expires_ns FROM silence WHERE expires_ns > ?1 AND created_ns "
      "<= ?2 AND crc IS driftd_crc(id, matcher, author, reason, created_ns, expires_ns) ORDER BY created_ns, id LIMIT "
      "?3");
  query.bind(now, now + kCorrection, kMaxSilences);  // one of a clock that was far ahead would hold for years
  while (true) {
    DRIFTD_TRY(const bool more, query.next());
    if (!more) return out;
    core::Silence one;
    one.id = query.text(0);
    DRIFTD_TRY(auto matcher, parse_strings(query.text(1)));
    one.backend = matcher["backend"];
    one.kind = matcher["kind"];
    one.name = matcher["id"];
    one.cls = matcher["class"];
    one.author = query.text(2);
    one.reason = query.text(3);
    one.created_ns = query.integer(4);
    one.expires_ns = query.integer(5);
    out.push_back(std::move(one));
  }
}

/// One that has ended is deleted: behind a clock that is set back, it would hold again.
Status write_one(Connection& db, const core::Silence& one, Nanos now) {
  if (one.expires_ns <= now) return db.statement("DELETE FROM silence WHERE id = ?").bind(one.id).run();
  const States matcher{{"backend", one.backend}, {"kind", one.kind}, {"id", one.name}, {"class", one.cls}};
  DRIFTD_CHECK(db.statement("DELETE FROM silence WHERE expires_ns < ?").bind(one.created_ns).run());
  return db
      .statement(
          "INSERT OR REPLACE INTO silence (id, matcher, author, reason, created_ns, expires_ns, crc) "
          "VALUES (?1, ?2, ?3, ?4, ?5, ?6, driftd_crc(?1, ?2, ?3, ?4, ?5, ?6))")
      .bind(one.id, to_text(matcher), one.author, one.reason, one.created_ns, one.expires_ns)
      .run();
}

}  // namespace

Task<Result<States>> SqliteStore::notification_states() {
  auto read = [](Connection& db) { return read_states(db); };
  auto states = co_await on_store(state_, std::move(read));
  co_return states;
}

Task<Status> SqliteStore::write_notifications(Write write) {
  const auto state = state_;
  const auto in = std::make_shared<Write>(std::move(write));
  Work work = [state, in] { return write_states(*state, *in); };
  auto done = co_await in_group(state, std::move(work));
  co_return done;
}

Task<Result<std::vector<core::Silence>>> SqliteStore::silences(Nanos now) {
  auto read = [now](Connection& db) { return read_silences(db, now); };
  auto found = co_await on_store(state_, std::move(read));
  co_return found;
}

Task<Status> SqliteStore::write_silence(core::Silence silence, core::AuditEntry line) {
  const auto state = state_;
  Work work = [state, one = std::move(silence), said = std::move(line)]() -> Status {
    DRIFTD_CHECK(write_one(*state->db, one, state->clock.wall()));
    return write_audit(*state, said);
  };
  auto done = co_await in_group(state, std::move(work));
  co_return done;
}

}  // namespace driftd::store
