// SPDX-License-Identifier: Apache-2.0
#include "store/incarnation.hpp"

#include <openssl/rand.h>
#include <algorithm>

#include "base/digest.hpp"
#include "base/log.hpp"
#include "store/audit.hpp"
#include "store/events.hpp"
#include "store/fields.hpp"
#include "store/migrations.hpp"

namespace driftd::store {
namespace {

/// The state that the database itself records.
struct Reached {
  Mark mark;
  Nanos newest_ns = 0;  ///< recorded time of its newest event; 0 if it has none
  std::string place;
  std::string restored;  ///< note of `driftd restore`; empty if there is none
};

Result<std::string> meta_text(Connection& db, const char* key) {
  auto query = db.statement("SELECT CAST(value AS TEXT) FROM meta WHERE key = ?");
  DRIFTD_TRY(const bool found, query.bind(std::string_view(key)).next());
  return found ? query.text(0) : std::string();
}

Result<std::uint64_t> meta_number(Connection& db, const char* key) {
  auto query = db.statement("SELECT value FROM meta WHERE key = ?");
  DRIFTD_TRY(const bool found, query.bind(std::string_view(key)).next());
  return found ? static_cast<std::uint64_t>(query.integer(0)) : 0;
}

template <class Value>
Status set_meta(Connection& db, const char* key, const Value& value) {
  return db.statement("INSERT OR REPLACE INTO meta (key, value, crc) VALUES (?1, ?2, driftd_crc(?1, ?2))")
      .bind(std::string_view(key), value)
      .run();
}

Result<Reached> read_reached(Connection& db) {
  Reached out;
  DRIFTD_TRY(out.mark.incarnation, meta_number(db, "incarnation"));
  DRIFTD_TRY(out.mark.commits, meta_number(db, "commits"));
  DRIFTD_TRY(out.mark.hlc, meta_number(db, "hlc"));
  DRIFTD_TRY(out.mark.seq, db.integer("SELECT seq FROM sqlite_sequence WHERE name = 'event'"));
  DRIFTD_TRY(out.newest_ns, db.integer("SELECT recorded_ns FROM event ORDER BY seq DESC LIMIT 1"));
  DRIFTD_TRY(out.place, meta_text(db, "place"));
  DRIFTD_TRY(out.restored, meta_text(db, "restored"));
  return out;
}

/// Why a new incarnation begins; empty if none begins. `first`: the first one, without an event.
struct Beginning {
  std::string reason, message;
};

bool behind(const Mark& store, const Mark& mark) {
  return mark.incarnation > store.incarnation || mark.commits > store.commits;
}

std::string newest_of(const Reached& store) {
  if (store.newest_ns == 0) return "it holds no event";
  return "its newest event is " + std::to_string(store.mark.seq) + " of " + render_time(store.newest_ns);
}

std::string loss_of(const Reached& store, const Mark& mark) {
  const auto lost = std::max<std::int64_t>(mark.seq - store.mark.seq, 0);
  return newest_of(store) + ", it had reached event " + std::to_string(mark.seq) + " and committed last at " +
         render_time(mark.at_ns) + "; " + std::to_string(lost) +
         " events and the baselines, decisions and delivery marks of that time are lost, and what changed since is "
         "found "
         "again as drift";
}

Beginning beginning_of(const Reached& store, const Result<Mark>& mark, const std::string& place) {
  const bool is_behind = mark && behind(store.mark, *mark);
  if (!store.restored.empty()) {
    return {"restored",
            "the store was restored (" + store.restored + "): " + (mark ? loss_of(store, *mark) : newest_of(store))};
  }
  if (is_behind) {
    return {"behind",
            "the store is behind what it had committed: " + loss_of(store, *mark) +
                ". Its write-ahead log was cut or damaged, or an older copy was put in place; check the disk"};
  }
  if (store.mark.incarnation == 0) return {"first", ""};
  if (!mark) {
    return {"unmarked",
            "whether the store lost commits cannot be told: " + mark.error().message + "; " + newest_of(store)};
  }
  if (store.place != place) {
    return {
        "copied",
        "store.db is not the file that it was: this data_dir is a copy, or was moved. If the other one still has its "
        "agent, two agents tell of the same systems: stop one of them; " +
            newest_of(store)};
  }
  return {};
}

std::string pending_text(const Beginning& beginning, const Reached& store, const Result<Mark>& mark,
                         std::uint64_t next) {
  std::map<std::string, std::string> details = {{"reason", beginning.reason},
                                                {"message", beginning.message},
                                                {"incarnation", std::to_string(next)},
                                                {"former", std::to_string(store.mark.incarnation)},
                                                {"newest_event", std::to_string(store.mark.seq)}};
  if (mark) {
    details["reached_event"] = std::to_string(mark->seq);
    details["reached_at"] = render_time(mark->at_ns);
    details["lost_events"] = std::to_string(std::max<std::int64_t>(mark->seq - store.mark.seq, 0));
  }
  return to_text(details);
}

Mark next_mark(const Mark& store, const Result<Mark>& mark, Nanos now) {
  Mark out = store;
  const Mark other = mark ? *mark : Mark{};
  const auto millis = static_cast<std::uint64_t>(std::max<Nanos>(now, 0) / 1'000'000);
  out.incarnation = std::max(std::max(store.incarnation, other.incarnation) + 1, millis);
  out.commits = std::max(store.commits, other.commits) + 1;
  out.seq = std::max(store.seq, other.seq);
  out.hlc = std::max(store.hlc, other.hlc);
  out.at_ns = now;
  return out;
}

/// Outbox numbers and id clocks must not be used twice either.
Status write_beginning(Connection& db, const Mark& next, const std::string& place, const std::string& pending) {
  DRIFTD_CHECK(set_meta(db, "incarnation", next.incarnation));
  DRIFTD_CHECK(set_meta(db, "commits", next.commits));
  DRIFTD_CHECK(set_meta(db, "hlc", next.hlc));
  DRIFTD_CHECK(set_meta(db, "place", place));
  if (!pending.empty()) DRIFTD_CHECK(set_meta(db, "untold", pending));
  DRIFTD_CHECK(db.statement("DELETE FROM meta WHERE key = 'restored'").run());
  DRIFTD_CHECK(db.statement("INSERT INTO sqlite_sequence (name, seq) SELECT 'event', 0 WHERE NOT EXISTS "
                            "(SELECT 1 FROM sqlite_sequence WHERE name = 'event')")
                   .run());
  return db.statement("UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = 'event'").bind(next.seq).run();
}

Status begin(Connection& db, const Mark& next, const std::string& place, const std::string& pending) {
  DRIFTD_CHECK(db.execute("BEGIN IMMEDIATE"));
  auto done = write_beginning(db, next, place, pending);
  if (done) done = db.execute("COMMIT");
  if (!done && db.in_transaction()) (void)db.execute("ROLLBACK");  // open() fails with the first error
  return done;
}

/// Writes the text of meta `key` as an event `what`, once.
Status write_pending_event(SqliteStore::State& state, const char* key, const char* what) {
  Connection& db = *state.db;
  DRIFTD_TRY(const auto text, meta_text(db, key));
  if (text.empty()) return {};
  core::AgentEvent event;
  event.what = what;
  DRIFTD_TRY(event.details, parse_strings(text));
  event.message = event.details["message"];
  event.details.erase("message");
  DRIFTD_CHECK(db.statement("DELETE FROM meta WHERE key = ?").bind(std::string_view(key)).run());
  return insert_own_event(state, std::move(event));
}

/// A store that is not what it was may lack lines of the audit log itself. The log says where.
Status audit_beginning(SqliteStore::State& state) {
  DRIFTD_TRY(const auto text, meta_text(*state.db, "untold"));
  if (text.empty()) return {};
  DRIFTD_TRY(auto details, parse_strings(text));
  core::AuditEntry line;
  line.at_ns = state.clock.wall();
  line.actor = "driftd";
  line.verb = "store " + details["reason"];
  line.subject = "store.db";
  line.reason = details["message"];
  return write_audit(state, line);
}

}  // namespace

Status take_incarnation(SqliteStore::State& state, const std::filesystem::path& file) {
  const auto mark_file = file.parent_path() / "store.mark";
  Connection& db = *state.db;
  DRIFTD_TRY(const auto place, birth_of(file));
  const auto read = read_reached(db);
  if (!read) return fail(read.error().code == Code::corrupt ? damaged(file, read.error().message) : read.error());
  const Reached& store = *read;
  const auto mark = read_mark(mark_file);
  if (!mark && mark.error().code == Code::denied) return fail(mark.error());
  const auto beginning = beginning_of(store, mark, place);
  state.reached = store.mark;
  if (!beginning.reason.empty()) {
    state.reached = next_mark(store.mark, mark, state.clock.wall());
    const bool reported = beginning.reason != "first";
    const auto pending = reported ? pending_text(beginning, store, mark, state.reached.incarnation) : std::string();
    DRIFTD_CHECK(begin(db, state.reached, place, pending));
    if (reported) {
      log::room("store").error("{}. From here on events carry incarnation {}", beginning.message,
                               state.reached.incarnation);
    }
  }
  DRIFTD_TRY(auto opened, MarkFile::open(mark_file));
  state.mark.emplace(std::move(opened));
  state.newest_seq = state.reached.seq;
  state.hlc = state.stored_hlc = state.reached.hlc;
  DRIFTD_CHECK(believe_clock(state, mark ? mark->at_ns : 0));
  state.reached.at_ns = state.clock.wall();
  DRIFTD_CHECK(state.mark->write(state.reached));
  DRIFTD_CHECK(state.mark->sync());
  return sync(file.parent_path());  // its name too: without the mark the next start could not tell that nothing is lost
}

void keep_mark(SqliteStore::State& state) {
  const Status written = state.mark->write(state.reached);
  if (!written && state.mark_kept) {
    log::room("store").warn(
        "the store's mark cannot be written, a cut of the store would be seen later or not at all: {}",
        written.error().message);
  }
  state.mark_kept = written.has_value();
}

Task<Status> SqliteStore::announce() {
  const auto state = state_;
  Work work = [state]() -> Status {
    DRIFTD_CHECK(audit_beginning(*state));
    DRIFTD_CHECK(write_pending_event(*state, "untold", "incarnation"));
    DRIFTD_CHECK(write_pending_event(*state, "untold_rotation", "key_rotated"));
    return end_open_requests(*state);
  };
  auto outcome = co_await in_group(state, std::move(work));
  co_return outcome;
}

}  // namespace driftd::store
