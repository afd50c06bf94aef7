// SPDX-License-Identifier: Apache-2.0
#include "store/audit.hpp"

#include <algorithm>

#include "base/log.hpp"

namespace driftd::store {
namespace {

constexpr int kPage = 2'000;  // lines that are checked in one read transaction

struct Link {
  std::int64_t id = 0;
  std::string hash;
};

Result<Link> read_link(Connection& db, const char* position) {
  auto query = db.statement("SELECT id, hash FROM audit_chain WHERE position = ?");
  DRIFTD_TRY(const bool found, query.bind(std::string_view(position)).next());
  if (!found) return fail(Code::corrupt, std::string("the audit log has lost the ") + position + " of its chain");
  return Link{query.integer(0), query.text(1)};
}

Status write_link(Connection& db, const char* position, const Link& link) {
  return db.statement("UPDATE audit_chain SET id = ?, hash = ? WHERE position = ?")
      .bind(link.id, link.hash, std::string_view(position))
      .run();
}

#define DRIFTD_AUDIT_COLUMNS                                                                                       \
  "id, at_ns, actor, verb, subject, reason, outcome, uid, gid, pid, claimed, backend, resource, digest, changes, " \
  "expires_ns, hash"

core::AuditRow read_line(const Statement& row) {
  core::AuditRow out;
  out.id = row.integer(0);
  out.at_ns = row.integer(1);
  out.actor = row.text(2);
  out.verb = row.text(3);
  out.subject = row.text(4);
  out.reason = row.text(5);
  out.outcome = row.text(6);
  out.caller = {row.integer(7), row.integer(8), row.integer(9), row.text(10)};
  out.backend = row.text(11);
  out.resource = row.text(12);
  out.digest = row.text(13);
  out.changes = row.text(14);
  out.expires_ns = row.maybe_integer(15);
  out.hash = row.text(16);
  return out;
}

Result<std::vector<core::AuditRow>> read_lines(Connection& db, int limit) {
  std::vector<core::AuditRow> out;
  auto query = db.statement("SELECT " DRIFTD_AUDIT_COLUMNS " FROM audit ORDER BY id DESC LIMIT ?");
  query.bind(limit);
  std::size_t read = 0;
  while (read < kPageBytes) {
    DRIFTD_TRY(const bool more, query.next());
    if (!more) break;
    out.push_back(read_line(query));
    read += out.back().changes.size() + out.back().reason.size() + out.back().outcome.size();
  }
  std::reverse(out.begin(), out.end());
  return out;
}

/// A check of the chain over several read transactions.
struct ChainWalk {
  core::AuditProof proof;
  Link at;  ///< the last line that was checked
  bool begun = false, done = false;
};

void break_at(ChainWalk& walk, const std::string& why) {
  walk.proof.broken = why;
  walk.done = true;
}

/// The anchor may have moved since the last page: lines that were pruned need no check any more.
Status begin_page(Connection& db, ChainWalk& walk) {
  DRIFTD_TRY(const Link anchor, read_link(db, "anchor"));
  if (!walk.begun || anchor.id > walk.at.id) walk.at = anchor;
  walk.begun = true;
  walk.proof.anchor_id = anchor.id;
  walk.proof.anchor_hash = anchor.hash;
  return {};
}

/// Checks that the chain ends at the head that was written with the last line.
Status end_walk(Connection& db, ChainWalk& walk) {
  DRIFTD_TRY(const Link head, read_link(db, "head"));
  walk.proof.head_id = head.id;
  walk.proof.head_hash = head.hash;
  DRIFTD_TRY(walk.proof.unchained, db.integer("SELECT count(*) FROM audit WHERE hash = ''"));
  DRIFTD_TRY(const auto behind, db.integer("SELECT count(*) FROM audit a JOIN audit_chain c ON c.position = 'anchor' "
                                           "WHERE a.id <= c.id AND a.hash <> ''"));
  if (behind > 0) break_at(walk, std::to_string(behind) + " lines stand in front of the anchor: it was moved");
  if (head.id != walk.at.id || head.hash != walk.at.hash) {
    break_at(walk, "lines behind number " + std::to_string(walk.at.id) +
                       " are missing: the last one that was written is number " + std::to_string(head.id));
  }
  walk.done = true;
  walk.proof.whole = walk.proof.broken.empty();
  return {};
}

Status walk_page(Connection& db, ChainWalk& walk) {
  DRIFTD_CHECK(begin_page(db, walk));
  auto query = db.statement("SELECT " DRIFTD_AUDIT_COLUMNS " FROM audit WHERE id > ? ORDER BY id LIMIT ?");
  query.bind(walk.at.id, kPage);
  for (int count = 0;; ++count) {
    DRIFTD_TRY(const bool more, query.next());
    if (!more) return count < kPage ? end_walk(db, walk) : Status{};
    const core::AuditRow line = read_line(query);
    if (line.id != walk.at.id + 1) {
      break_at(walk, "lines " + std::to_string(walk.at.id + 1) + " to " + std::to_string(line.id - 1) + " are missing");
      return {};
    }
    if (core::chain_hash(walk.at.hash, line.id, line) != line.hash) {
      break_at(walk, "line " + std::to_string(line.id) + " was changed after it was written");
      return {};
    }
    walk.at = {line.id, line.hash};
    ++walk.proof.lines;
  }
}

}  // namespace

Status write_audit(Connection& db, const core::AuditEntry& entry) {
  DRIFTD_TRY(const Link head, read_link(db, "head"));
  const std::int64_t id = head.id + 1;
  const std::string hash = core::chain_hash(head.hash, id, entry);
  DRIFTD_CHECK(db.statement("INSERT INTO audit (" DRIFTD_AUDIT_COLUMNS ") VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)")
                   .bind(id, entry.at_ns, entry.actor, entry.verb, entry.subject, entry.reason, entry.outcome,
                         entry.caller.uid, entry.caller.gid, entry.caller.pid, entry.caller.claimed, entry.backend,
                         entry.resource, entry.digest, entry.changes, entry.expires_ns, hash)
                   .run());
  return write_link(db, "head", {id, hash});
}

/// Returns the oldest lines that may be deleted, up to `limit`, in the order of the chain and without a gap: old lines,
/// and lines of a clock that was ahead if an old line follows them, because they were written before it. Stops at a
/// young line that is not in the future: its clock may have been right, and then the clock of the following old line
/// was wrong.
Result<std::vector<Link>> old_lines(Connection& db, Nanos before, Nanos now, std::size_t limit) {
  std::vector<Link> out;
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

Result<bool> prune_audit(Connection& db, Nanos before, Nanos now, int limit) {
  DRIFTD_TRY(const auto lines, old_lines(db, before, now, static_cast<std::size_t>(limit)));
  if (lines.empty()) return false;
  const Link& last = lines.back();
  DRIFTD_CHECK(db.statement("DELETE FROM audit WHERE id <= ?").bind(last.id).run());
  DRIFTD_TRY(const Link anchor, read_link(db, "anchor"));
  if (last.id > anchor.id) DRIFTD_CHECK(write_link(db, "anchor", last));
  log_chain(db, "pruned " + std::to_string(lines.size()) + " lines");
  return lines.size() == static_cast<std::size_t>(limit);
}

void log_chain(Connection& db, const std::string& when) {
  const auto anchor = read_link(db, "anchor");
  const auto head = read_link(db, "head");
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
  Work work = [state, line] { return write_audit(*state->db, *line); };
  auto outcome = co_await in_group(state, std::move(work));
  co_return outcome;
}

Task<Result<std::vector<core::AuditRow>>> SqliteStore::audit(int limit) {
  auto read = [limit](Connection& db) { return read_lines(db, limit); };
  auto rows = co_await read_on_io_pool(state_, std::move(read));
  co_return rows;
}

Task<Result<core::AuditProof>> SqliteStore::verify_audit() {
  const auto walk = std::make_shared<ChainWalk>();
  while (!walk->done) {
    auto read = [walk](Connection& db) -> Result<bool> {
      DRIFTD_CHECK(walk_page(db, *walk));
      return true;
    };
    DRIFTD_CO_TRY([[maybe_unused]] const bool done, co_await read_on_io_pool(state_, std::move(read)));
  }
  co_return walk->proof;
}

}  // namespace driftd::store
