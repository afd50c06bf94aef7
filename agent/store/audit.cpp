// SPDX-License-Identifier: Apache-2.0
#include "store/audit.hpp"

#include <algorithm>

#include "base/escape.hpp"
#include "base/log.hpp"
#include "store/audit_walk.hpp"
#include "store/events.hpp"

namespace driftd::store {
namespace {

using core::AuditLink;

// Bytes of a line, as migration 009 counted those of older lines. 48: numbers and the row's own bytes.
#define DRIFTD_AUDIT_BYTES                                                                                      \
  "48 + length(CAST(actor || verb || subject || reason || outcome || claimed || backend || resource || digest " \
  "|| changes || hash || request AS BLOB))"

constexpr std::int64_t kAnnouncedLines = 1'000;     // an anchor is announced after this many lines,
constexpr std::chrono::minutes kAnnouncedAfter{5};  // or after this time if there is any new line

Status write_link(Connection& db, const char* position, const AuditLink& link, std::int64_t more_bytes = 0) {
  return db.statement("UPDATE audit_chain SET id = ?, hash = ?, bytes = bytes + ? WHERE position = ?")
      .bind(link.id, link.hash, more_bytes, std::string_view(position))
      .run();
}

std::int64_t bytes_of(const core::AuditEntry& entry, const std::string& hash) {
  std::size_t out = 48 + hash.size();
  for (const std::string* field :
       {&entry.actor, &entry.verb, &entry.subject, &entry.reason, &entry.outcome, &entry.caller.claimed, &entry.backend,
        &entry.resource, &entry.digest, &entry.changes, &entry.request}) {
    out += field->size();
  }
  return static_cast<std::int64_t>(out);
}

/// Returns the line as it can be exported: JSON has no other bytes, and the hash must be that of what is read again.
core::AuditEntry as_text(core::AuditEntry entry) {
  for (std::string* field :
       {&entry.actor, &entry.verb, &entry.subject, &entry.reason, &entry.outcome, &entry.caller.claimed, &entry.backend,
        &entry.resource, &entry.digest, &entry.changes, &entry.request}) {
    *field = valid_utf8(std::move(*field));
  }
  return entry;
}

/// Remembers a request whose outcome is not known yet, and forgets it with its outcome.
Status note_request(Connection& db, const core::AuditEntry& entry, std::int64_t id) {
  if (entry.request.empty()) return {};
  if (entry.verb.starts_with(core::kAsked)) {
    return db.statement("INSERT INTO audit_open (request, id) VALUES (?, ?)").bind(entry.request, id).run();
  }
  return db.statement("DELETE FROM audit_open WHERE request = ?").bind(entry.request).run();
}

Result<std::vector<core::AuditRow>> read_lines(Connection& db, std::int64_t after, int limit) {
  std::vector<core::AuditRow> out;
  const bool newest = after < 0;
  auto query = db.statement(newest ? "SELECT " DRIFTD_AUDIT_COLUMNS " FROM audit WHERE id > ? ORDER BY id DESC LIMIT ?"
                                   : "SELECT " DRIFTD_AUDIT_COLUMNS " FROM audit WHERE id > ? ORDER BY id LIMIT ?");
  query.bind(after, limit);
  std::size_t read = 0;
  while (read < kPageBytes) {
    DRIFTD_TRY(const bool more, query.next());
    if (!more) break;
    out.push_back(read_audit_line(query));
    read += out.back().changes.size() + out.back().reason.size() + out.back().outcome.size();
  }
  if (newest) std::reverse(out.begin(), out.end());
  return out;
}

/// Returns the oldest lines that may be deleted, up to `limit`, in the order of the chain and without a gap: old lines,
/// and lines of a clock that was ahead if an old line follows them, because they were written before it. Stops at a
/// young line that is not in the future: its clock may have been right, and then the clock of the following old line
/// was wrong.
Result<std::vector<core::AuditLink>> old_lines(Connection& db, Nanos before, Nanos now, std::size_t limit) {
  std::vector<core::AuditLink> out;
  std::size_t old = 0;  // length of `out` up to the last old line
  auto query = db.statement("SELECT id, hash, at_ns FROM audit ORDER BY id");
  while (old < limit) {
    DRIFTD_TRY(const bool more, query.next());
    const bool ahead = more && query.integer(2) > now;
    if (!more || (query.integer(2) >= before && !ahead)) break;
    if (out.size() < limit) out.push_back({query.integer(0), query.text(1)});
    if (!ahead) old = out.size();
  }
  out.resize(old);
  return out;
}

/// The lines of requests whose outcome no process will write any more.
Result<std::vector<core::AuditRow>> read_open_requests(Connection& db) {
  std::vector<core::AuditRow> out;
  auto query =
      db.statement("SELECT " DRIFTD_AUDIT_COLUMNS " FROM audit WHERE id IN (SELECT id FROM audit_open) ORDER BY id");
  while (true) {
    DRIFTD_TRY(const bool more, query.next());
    if (!more) return out;
    out.push_back(read_audit_line(query));
  }
}

Result<bool> is_anchor_due(SqliteStore::State& state) {
  DRIFTD_TRY(const AuditLink head, read_audit_link(*state.db, "head"));
  DRIFTD_TRY(const AuditLink announced, read_audit_link(*state.db, "announced"));
  const std::int64_t lines = head.id - announced.id;
  return lines >= kAnnouncedLines || (lines > 0 && state.clock.mono() - state.anchored >= kAnnouncedAfter);
}

Status announce_anchor(SqliteStore::State& state) {
  DRIFTD_TRY(const AuditLink head, read_audit_link(*state.db, "head"));
  DRIFTD_TRY(const AuditLink announced, read_audit_link(*state.db, "announced"));
  core::AgentEvent event;
  event.what = "audit_anchor";
  event.message = "the audit log ends with line " + std::to_string(head.id) + " and hash " + head.hash +
                  "; `driftd audit verify --anchor " + std::to_string(head.id) + ":" + head.hash +
                  "` proves later that no line up to there was changed or removed";
  event.details = {{"id", std::to_string(head.id)},
                   {"hash", head.hash},
                   {"lines", std::to_string(head.id - announced.id)},
                   {"former_id", std::to_string(announced.id)}};
  log::room("store").info("{}: {}", event.what, event.message);
  DRIFTD_CHECK(insert_notice(state, std::move(event)));
  return write_link(*state.db, "announced", head);
}

}  // namespace

Status write_audit(SqliteStore::State& state, const core::AuditEntry& given) {
  Connection& db = *state.db;
  const core::AuditEntry entry = as_text(given);
  DRIFTD_TRY(const AuditLink head, read_audit_link(db, "head"));
  const std::int64_t id = head.id + 1;
  const std::string hash = core::chain_hash(head.hash, id, entry);
  DRIFTD_CHECK(db.statement("INSERT INTO audit (" DRIFTD_AUDIT_COLUMNS ") VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)")
                   .bind(id, entry.at_ns, entry.actor, entry.verb, entry.subject, entry.reason, entry.outcome,
                         entry.caller.uid, entry.caller.gid, entry.caller.pid, entry.caller.claimed, entry.backend,
                         entry.resource, entry.digest, entry.changes, entry.expires_ns, hash, entry.request)
                   .run());
  DRIFTD_CHECK(note_request(db, entry, id));
  return write_link(db, "head", {id, hash}, bytes_of(entry, hash));
}

Status end_open_requests(SqliteStore::State& state) {
  DRIFTD_TRY(const auto asked, read_open_requests(*state.db));
  for (const auto& line : asked) {
    core::AuditEntry end = line;
    end.at_ns = state.clock.wall();
    end.actor = "driftd";
    end.caller = {};
    end.verb = line.verb.substr(core::kAsked.size());
    end.outcome = "unknown: the agent ended before it knew whether this was done";
    end.reason = "asked in line " + std::to_string(line.id);
    DRIFTD_CHECK(write_audit(state, end));
  }
  return state.db->execute("DELETE FROM audit_open");
}

Result<std::int64_t> audit_bytes(Connection& db) {
  return db.integer("SELECT bytes FROM audit_chain WHERE position = 'head'");
}

Result<bool> prune_audit(Connection& db, Nanos before, Nanos now, int limit) {
  DRIFTD_TRY(const auto lines, old_lines(db, before, now, static_cast<std::size_t>(limit)));
  if (lines.empty()) return false;
  const AuditLink& last = lines.back();
  auto sum = db.statement("SELECT coalesce(sum(" DRIFTD_AUDIT_BYTES "), 0) FROM audit WHERE id <= ?");
  DRIFTD_CHECK(sum.bind(last.id).next());
  const std::int64_t bytes = sum.integer(0);
  DRIFTD_CHECK(db.statement("DELETE FROM audit WHERE id <= ?").bind(last.id).run());
  DRIFTD_CHECK(
      db.statement("UPDATE audit_chain SET bytes = max(bytes - ?, 0) WHERE position = 'head'").bind(bytes).run());
  DRIFTD_TRY(const AuditLink anchor, read_audit_link(db, "anchor"));
  if (last.id > anchor.id) DRIFTD_CHECK(write_link(db, "anchor", last));
  log_chain(db, "pruned " + std::to_string(lines.size()) + " lines");
  return lines.size() == static_cast<std::size_t>(limit);
}

void log_chain(Connection& db, const std::string& when) {
  const auto anchor = read_audit_link(db, "anchor");
  const auto head = read_audit_link(db, "head");
  if (!anchor || !head) {
    log::room("store").error("audit: {}", (anchor ? head : anchor).error().message);
    return;
  }
  log::room("store").info("audit: {}; the chain begins behind line {} ({}) and ends with line {} ({})", when,
                          anchor->id, anchor->hash.empty() ? "no hash" : anchor->hash, head->id,
                          head->hash.empty() ? "no hash" : head->hash);
}

Task<Status> SqliteStore::audit(core::AuditEntry entry) {
  const auto state = state_;
  const auto line = std::make_shared<core::AuditEntry>(std::move(entry));
  Work work = [state, line] { return write_audit(*state, *line); };
  auto outcome = co_await in_group(state, std::move(work));
  co_return outcome;
}

Task<Result<std::vector<core::AuditRow>>> SqliteStore::audit(int limit) {
  auto read = [limit](Connection& db) { return read_lines(db, -1, limit); };
  auto rows = co_await read_on_io_pool(state_, std::move(read));
  co_return rows;
}

Task<Result<std::vector<core::AuditRow>>> SqliteStore::audit_after(std::int64_t id, int limit) {
  auto read = [id, limit](Connection& db) { return read_lines(db, std::max<std::int64_t>(id, 0), limit); };
  auto rows = co_await read_on_io_pool(state_, std::move(read));
  co_return rows;
}

Task<Result<core::AuditProof>> SqliteStore::verify_audit(std::optional<core::AuditLink> anchor) {
  const auto walk = std::make_shared<AuditWalk>(std::move(anchor));
  while (!walk->done()) {
    auto read = [walk](Connection& db) -> Result<bool> {
      DRIFTD_CHECK(walk->step(db));
      return true;
    };
    DRIFTD_CO_TRY([[maybe_unused]] const bool done, co_await read_on_io_pool(state_, std::move(read)));
  }
  co_return walk->proof();
}

Task<Status> SqliteStore::announce_audit() {
  const auto state = state_;
  auto look = [state](Connection&) { return is_anchor_due(*state); };  // no transaction: mostly there is nothing to do
  DRIFTD_CO_TRY(const bool due, co_await on_store(state, std::move(look)));
  if (!due) co_return Status{};
  Work work = [state] { return announce_anchor(*state); };
  DRIFTD_CO_CHECK(co_await in_group(state, std::move(work)));
  state->anchored = state->clock.mono();
  co_return Status{};
}

}  // namespace driftd::store
