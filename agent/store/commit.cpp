// SPDX-License-Identifier: Apache-2.0
#include "store/audit.hpp"
#include "store/change_log.hpp"
#include "store/checksums.hpp"
#include "store/cursors.hpp"
#include "store/enforcements.hpp"
#include "store/events.hpp"
#include "store/links.hpp"
#include "store/rows.hpp"

namespace driftd::store {
namespace {

Status write_cursors(SqliteStore::State& state, std::int64_t backend, const core::PageCommit& page) {
  Connection& db = *state.db;
  if (page.cursor) {
    DRIFTD_TRY(const auto sealed, encrypt_cursor(state.key, page.backend_uid, CursorOf::refresh, *page.cursor));
    DRIFTD_CHECK(db.statement("UPDATE backend SET cursor = ?, " DRIFTD_UNSIGN(DRIFTD_CRC_BACKEND) " WHERE id = ?")
                     .bind(sealed, backend)
                     .run());
  }
  if (page.watch_cursor) {
    DRIFTD_TRY(const auto sealed, encrypt_cursor(state.key, page.backend_uid, CursorOf::watch, *page.watch_cursor));
    DRIFTD_CHECK(db.statement("UPDATE backend SET watch_cursor = ?, " DRIFTD_UNSIGN(DRIFTD_CRC_BACKEND) " WHERE id = ?")
                     .bind(sealed, backend)
                     .run());
  }
  return {};
}

Status write_marks(SqliteStore::State& state, std::int64_t backend, const core::PageCommit& page) {
  Connection& db = *state.db;
  DRIFTD_CHECK(write_cursors(state, backend, page));
  if (page.health) {
    DRIFTD_CHECK(db.statement("UPDATE backend SET health = ?, " DRIFTD_UNSIGN(DRIFTD_CRC_BACKEND) " WHERE id = ?")
                     .bind(static_cast<int>(*page.health), backend)
                     .run());
  }
  for (const auto& kind : page.established) DRIFTD_CHECK(establish(db, backend, kind, true));
  return {};
}

Status write_state(SqliteStore::State& state, const core::PageCommit& page, core::CommitResult& out) {
  Connection& db = *state.db;
  if (page.backend) DRIFTD_CHECK(write_backend(db, state.key, *page.backend));
  const bool touches =
      !page.writes.empty() || page.cursor || page.watch_cursor || page.health || !page.established.empty();
  if (!touches) return {};
  DRIFTD_TRY(const auto backend, backend_id(db, page.backend_uid));
  DRIFTD_TRY(out.revisions, write_resources(db, backend, page.backend_uid, page.writes, state.clock.wall()));
  return write_marks(state, backend, page);
}

Status write_page(SqliteStore::State& state, const core::PageCommit& page, core::CommitResult& out) {
  if (!page.link.empty()) DRIFTD_CHECK(use_link(*state.db, page.link, page.link_used_ns));
  DRIFTD_CHECK(write_state(state, page, out));
  for (const auto& write : page.declarations) DRIFTD_CHECK(write_declaration(*state.db, write));
  DRIFTD_TRY(out.events, insert_events(state, page.events));
  for (const auto& one : page.enforcements) {
    DRIFTD_TRY(const bool ended, has_ended(*state.db, one.id));
    DRIFTD_CHECK(write_enforcement(*state.db, one));
    if (!ended) DRIFTD_CHECK(log_change(state, one));
  }
  for (const auto& stop : page.enforcement_stops) DRIFTD_CHECK(write_enforcement_stop(*state.db, stop));
  for (const auto& line : page.audit) {
    DRIFTD_CHECK(line.rules ? write_rules(state, line) : write_audit(state, line));
  }
  return {};
}

}  // namespace

Task<Result<core::CommitResult>> SqliteStore::commit(core::PageCommit page) {
  const auto state = state_;
  const auto in = std::make_shared<core::PageCommit>(std::move(page));
  const auto out = std::make_shared<core::CommitResult>();
  Work work = [state, in, out] { return write_page(*state, *in, *out); };
  DRIFTD_CO_CHECK(co_await in_group(state, std::move(work)));
  co_return std::move(*out);
}

}  // namespace driftd::store
