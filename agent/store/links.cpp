// SPDX-License-Identifier: Apache-2.0
// Links that decide: the hashes of their tokens.
#include "store/links.hpp"

#include "core/ports/links.hpp"
#include "store/state.hpp"

namespace driftd::store {
namespace {

using core::DecisionLink;

#define DRIFTD_CRC_LINK "driftd_crc(hash, event_id, sink, drift, digest, action, created_ns, expires_ns, used_ns)"

constexpr Nanos kKeptAfterExpiry = 86'400'000'000'000;  // so that its page can say that it expired

Status write_links(Connection& db, const std::vector<DecisionLink>& links) {
  if (links.empty()) return {};
  DRIFTD_CHECK(db.statement("DELETE FROM decision_link WHERE expires_ns < ?")
                   .bind(links.front().created_ns - kKeptAfterExpiry)
                   .run());
  for (const auto& link : links) {
    DRIFTD_CHECK(db.statement("INSERT INTO decision_link (hash, event_id, sink, drift, digest, action, created_ns, "
                              "expires_ns, used_ns, crc) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 0, driftd_crc(?1, ?2, "
                              "?3, ?4, ?5, ?6, ?7, ?8, 0))")
                     .bind(link.hash, link.event_id, link.sink, link.drift_id, link.digest, link.action,
                           link.created_ns, link.expires_ns)
                     .run());
  }
  return {};
}

Result<std::optional<DecisionLink>> read_link(Connection& db, const std::string& hash) {
  auto query = db.statement(
      "SELECT hash, event_id, sink, drift, digest, action, created_ns, expires_ns, used_ns FROM decision_link WHERE "
      "hash = ? AND crc IS " DRIFTD_CRC_LINK);
  query.bind(hash);
  DRIFTD_TRY(const bool found, query.next());
  if (!found) return std::optional<DecisionLink>();
  DecisionLink out{query.text(0), query.text(1), query.text(2), query.text(3), query.text(4), query.text(5)};
  out.created_ns = query.integer(6);
  out.expires_ns = query.integer(7);
  out.used_ns = query.integer(8);
  return std::optional<DecisionLink>(std::move(out));
}

}  // namespace

Status use_link(Connection& db, const std::string& hash, Nanos now_ns) {
  DRIFTD_TRY(const auto link, read_link(db, hash));
  if (!link || link->used_ns != 0 || link->expires_ns <= now_ns) {
    return fail(Code::denied, "this link was used before or has expired: nothing was decided by it now");
  }
  return db
      .statement(
          "UPDATE decision_link SET used_ns = ?2, crc = driftd_crc(hash, event_id, sink, drift, digest, "
          "action, created_ns, expires_ns, ?2) WHERE hash = ?1")
      .bind(hash, now_ns)
      .run();
}

Task<Status> SqliteStore::add_links(std::vector<DecisionLink> links) {
  const auto state = state_;
  const auto in = std::make_shared<std::vector<DecisionLink>>(std::move(links));
  Work work = [state, in] { return write_links(*state->db, *in); };
  auto done = co_await in_group(state, std::move(work));
  co_return done;
}

Task<Result<std::optional<DecisionLink>>> SqliteStore::find_link(std::string hash) {
  auto read = [hash = std::move(hash)](Connection& db) { return read_link(db, hash); };
  auto found = co_await on_store(state_, std::move(read));
  co_return found;
}

}  // namespace driftd::store
