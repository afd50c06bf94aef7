// SPDX-License-Identifier: Apache-2.0
#include "store/audit_walk.hpp"

#include "store/backup.hpp"
#include "store/migrations.hpp"

namespace driftd::store {
namespace {

constexpr int kAuditRequests = 9;  // the store version that brought the column `request`

}  // namespace

core::AuditRow read_audit_line(const Statement& row) {
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
  out.request = row.text(17);
  return out;
}

Result<core::AuditLink> read_audit_link(Connection& db, std::string_view position) {
  auto query = db.statement("SELECT id, hash FROM audit_chain WHERE position = ?");
  DRIFTD_TRY(const bool found, query.bind(position).next());
  if (!found) return fail(Code::corrupt, "the audit log has lost the " + std::string(position) + " of its chain");
  return core::AuditLink{query.integer(0), query.text(1)};
}

void AuditWalk::break_off(std::string why) {
  proof_.broken = std::move(why);
  done_ = true;
}

/// The anchor may have moved since the last page: lines that were deleted need no check any more.
Status AuditWalk::begin_page(Connection& db) {
  DRIFTD_TRY(const core::AuditLink anchor, read_audit_link(db, "anchor"));
  proof_.anchor_id = anchor.id;
  proof_.anchor_hash = anchor.hash;
  if (begun_ && anchor.id <= chain_.at().id) return {};
  begun_ = true;
  if (auto why = chain_.begin(anchor); !why.empty()) break_off(std::move(why));
  return {};
}

/// Checks that the chain ends at the head that was written with the last line, and that nothing stands in front of it.
Status AuditWalk::end(Connection& db) {
  done_ = true;
  DRIFTD_TRY(const core::AuditLink head, read_audit_link(db, "head"));
  proof_.head_id = head.id;
  proof_.head_hash = head.hash;
  // Lines without a hash are older than the chain. Behind an anchor with one they were deleted together with it.
  auto behind = db.statement("SELECT count(*), coalesce(sum(hash = '' AND id > 0), 0) FROM audit WHERE id <= ?");
  DRIFTD_CHECK(behind.bind(proof_.anchor_id).next());
  proof_.unchained = proof_.anchor_hash.empty() ? behind.integer(1) : 0;
  const std::int64_t foreign = behind.integer(0) - proof_.unchained;
  if (foreign > 0) {
    break_off(std::to_string(foreign) + " lines stand in front of the anchor: it was moved, or they were put there");
  }
  const core::AuditLink& last = chain_.at();
  if (head.id != last.id || head.hash != last.hash) {
    break_off("lines behind number " + std::to_string(last.id) +
              " are missing: the last one that was written is number " + std::to_string(head.id));
  }
  if (proof_.broken.empty()) proof_.broken = chain_.end(proof_.unchecked);
  proof_.whole = proof_.broken.empty();
  return {};
}

Status AuditWalk::step(Connection& db) {
  DRIFTD_CHECK(begin_page(db));
  auto query = db.statement("SELECT " DRIFTD_AUDIT_COLUMNS " FROM audit WHERE id > ? ORDER BY id LIMIT ?");
  query.bind(chain_.at().id, kAuditPage);
  for (int count = 0; !done_; ++count) {
    DRIFTD_TRY(const bool more, query.next());
    if (!more) return count < kAuditPage ? end(db) : Status{};
    if (auto why = chain_.check(read_audit_line(query)); !why.empty()) break_off(std::move(why));
    if (!done_) ++proof_.lines;
  }
  return {};
}

Result<core::AuditProof> verify_audit(const std::filesystem::path& file, std::optional<core::AuditLink> anchor) {
  DRIFTD_TRY(const auto db, open_reading(file));
  DRIFTD_CHECK(check_version(*db, file, migrations()));
  DRIFTD_TRY(const auto version, db->integer("PRAGMA user_version"));
  if (version < kAuditRequests) {
    return fail(Code::conflict, file.string() + " has schema version " + std::to_string(version) + ", expected " +
                                    std::to_string(kAuditRequests) +
                                    " or higher: check it with the driftd that wrote it, or start the agent on it");
  }
  AuditWalk walk(std::move(anchor));
  while (!walk.done()) {
    DRIFTD_CHECK(db->execute("BEGIN"));
    const Status step = walk.step(*db);
    DRIFTD_CHECK(db->execute("ROLLBACK"));
    if (!step) return fail(step.error());
  }
  return walk.proof();
}

}  // namespace driftd::store
