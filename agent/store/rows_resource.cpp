// SPDX-License-Identifier: Apache-2.0
#include "store/checksums.hpp"
#include "store/fields.hpp"
#include "store/rows.hpp"

namespace driftd::store {
namespace {

struct Stored {
  std::int64_t id = 0;  ///< 0: none
  std::int64_t revision = 0;
  bool has_open = false;  ///< it has open drifts
};

Result<Stored> find_stored(Connection& db, std::int64_t backend, const core::ResourceId& id) {
  auto query = db.statement("SELECT id, revision, has_open FROM resource WHERE backend = ? AND kind = ? AND name = ?");
  DRIFTD_TRY(const bool found, query.bind(backend, id.kind, id.id).next());
  if (!found) return Stored{};
  return Stored{query.integer(0), query.integer(1), query.integer(2) != 0};
}

/// Parameters 1 to 20 in the order of DRIFTD_CRC_RESOURCE. `next` must outlive the statement.
template <class... More>
Statement& bind_row(Statement& statement, std::int64_t backend, std::int64_t revision, const core::StoredResource& next,
                    const More&... more) {
  return statement.bind(backend, next.id.kind, next.id.id, revision, next.digest.low, next.digest.high,
                        next.rules_generation, next.observed ? 1 : 0, next.open.empty() ? 0 : 1, next.schema_revision,
                        next.observed_ns, next.external_name, next.observed_external_name, next.origin, next.version,
                        next.status, to_text(next.metadata), to_text(next.was_unread), Borrowed{next.baseline},
                        Borrowed{next.observed}, more...);
}

#define DRIFTD_CRC_20 \
  "driftd_crc(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20)"

Result<std::int64_t> insert_row(Connection& db, std::int64_t backend, const core::StoredResource& next) {
  auto insert = db.statement(
      "INSERT INTO resource (backend, kind, name, revision, digest_low, digest_high, rules_generation, present, "
      "has_open, "
      "schema_revision, observed_ns, external_name, observed_external_name, origin, version, status, metadata, "
      "was_unread, "
      "baseline, observed, crc) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, "
      "?18, ?19, ?20, " DRIFTD_CRC_20 ")");
  DRIFTD_CHECK(bind_row(insert, backend, 1, next).run());
  return db.last_rowid();
}

/// Leaves backend, kind and name as they are, so that SQLite does not write their index.
Status update_row(Connection& db, std::int64_t row, std::int64_t backend, const core::StoredResource& next) {
  auto update = db.statement(
      "UPDATE resource SET revision = ?4, digest_low = ?5, digest_high = ?6, "
      "rules_generation = ?7, present = ?8, has_open = ?9, schema_revision = ?10, observed_ns = ?11, external_name = "
      "?12, "
      "observed_external_name = ?13, origin = ?14, version = ?15, status = ?16, metadata = ?17, was_unread = ?18, "
      "baseline = ?19, observed = ?20, crc = " DRIFTD_CRC_20 " WHERE id = ?21");
  return bind_row(update, backend, next.revision + 1, next, row).run();
}

struct Place {
  std::int64_t resource = 0;
  std::int64_t position = 0;
  std::optional<Nanos> ended_ns;
};

Status write_drift(Connection& db, const Place& place, const std::string& backend_uid, const core::Drift& drift) {
  return db
      .statement(
          "INSERT OR REPLACE INTO drift (id, open, resource, position, backend, kind, name, class, against, "
          "action, operation, status, digest, opened_ns, updated_ns, stale_since_ns, actor, reason, "
          "decided_ns, expires_ns, claimed_by, claim_until_ns, ended_ns, changes, approvals_needed, approvals, former, "
          "crc) VALUES "
          "(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19,?20,?21,?22,?23,?24,?25,?26,?27,"
          "driftd_crc(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19,?20,?21,?22,?23,?24,?25,?26,"
          "?27))")
      .bind(drift.id, place.ended_ns ? 0 : 1, place.resource, place.position,
            drift.backend_uid.empty() ? backend_uid : drift.backend_uid, drift.resource.kind, drift.resource.id,
            core::render(drift.cls), core::render(drift.against), core::render(drift.action),
            core::render(drift.operation), core::render(drift.status), drift.digest, drift.opened_ns, drift.updated_ns,
            drift.stale_since_ns, drift.actor, drift.reason, drift.decided_ns, drift.expires_ns, drift.claimed_by,
            drift.claim_until_ns, place.ended_ns, to_text(drift.changes), drift.approvals_needed,
            to_text(drift.approvals), to_text(drift.former))
      .run();
}

std::string conflict_text(const core::StoredResource& next, std::int64_t stored) {
  return core::render(next.id) + " was written by someone else: expected revision " + std::to_string(next.revision) +
         ", the store has " + std::to_string(stored) + "; load it and judge again";
}

/// Returns the row as it was before, with the id that it has now.
Result<Stored> write_row(Connection& db, std::int64_t backend, const core::StoredResource& next) {
  DRIFTD_TRY(auto stored, find_stored(db, backend, next.id));
  if (stored.revision != next.revision) return fail(Code::conflict, conflict_text(next, stored.revision));
  if (stored.id == 0) {
    DRIFTD_TRY(stored.id, insert_row(db, backend, next));
  } else {
    DRIFTD_CHECK(update_row(db, stored.id, backend, next));
  }
  return stored;
}

Status write_drifts(Connection& db, const Stored& stored, const std::string& backend_uid,
                    const core::ResourceWrite& write, Nanos now) {
  if (stored.has_open)
    DRIFTD_CHECK(db.statement("DELETE FROM drift WHERE resource = ? AND open = 1").bind(stored.id).run());
  Place place{stored.id, 0, {}};
  for (const auto& drift : write.next.open) {
    DRIFTD_CHECK(write_drift(db, place, backend_uid, drift));
    ++place.position;
  }
  place.ended_ns = now;
  for (const auto& drift : write.ended) DRIFTD_CHECK(write_drift(db, place, backend_uid, drift));
  return {};
}

}  // namespace

Result<std::vector<std::int64_t>> write_resources(Connection& db, std::int64_t backend, const std::string& backend_uid,
                                                  const std::vector<core::ResourceWrite>& writes, Nanos now) {
  std::vector<std::int64_t> revisions;
  std::vector<Stored> rows;
  for (const auto& write : writes) {
    DRIFTD_TRY(const auto stored, write_row(db, backend, write.next));
    revisions.push_back(stored.revision + 1);
    rows.push_back(stored);
  }
  for (std::size_t i = 0; i < writes.size(); ++i) DRIFTD_CHECK(write_drifts(db, rows[i], backend_uid, writes[i], now));
  return revisions;
}

Result<core::Drift> read_drift(const Statement& row) {
  core::Drift drift;
  drift.id = row.text(0);
  drift.backend_uid = row.text(1);
  drift.resource = {row.text(2), row.text(3)};
  DRIFTD_TRY(drift.cls, core::parse_class(row.text(4)));
  DRIFTD_TRY(drift.against, core::parse_against(row.text(5)));
  DRIFTD_TRY(drift.action, core::parse_action(row.text(6)));
  DRIFTD_TRY(drift.operation, core::parse_operation(row.text(7)));
  DRIFTD_TRY(drift.status, core::parse_drift_status(row.text(8)));
  drift.digest = row.text(9);
  drift.opened_ns = row.integer(10);
  drift.updated_ns = row.integer(11);
  drift.stale_since_ns = row.maybe_integer(12);
  drift.actor = row.text(13);
  drift.reason = row.text(14);
  drift.decided_ns = row.maybe_integer(15);
  drift.expires_ns = row.maybe_integer(16);
  drift.claimed_by = row.text(17);
  drift.claim_until_ns = row.maybe_integer(18);
  DRIFTD_TRY(drift.changes, parse_changes(row.text(19)));
  drift.approvals_needed = static_cast<int>(row.integer(20));
  DRIFTD_TRY(drift.approvals, parse_approvals(row.text(21)));
  DRIFTD_TRY(drift.former, parse_former(row.text(22)));
  return drift;
}

Result<std::vector<core::Drift>> read_open_drifts(Connection& db, std::int64_t resource) {
  std::vector<core::Drift> out;
  auto query = db.statement("SELECT " DRIFTD_DRIFT_COLUMNS ", crc IS " DRIFTD_CRC_DRIFT
                            " FROM drift d WHERE d.resource = ? AND d.open = 1 "
                            "ORDER BY d.position");
  query.bind(resource);
  while (true) {
    DRIFTD_TRY(const bool more, query.next());
    if (!more) return out;
    if (query.integer(kDriftColumns) == 0) return fail(wrong_checksum("drift " + query.text(0)));
    DRIFTD_TRY(auto drift, read_drift(query));
    out.push_back(std::move(drift));
  }
}

Result<core::StoredResource> read_resource_row(const Statement& row) {
  core::StoredResource out;
  out.id = {row.text(1), row.text(2)};
  out.revision = row.integer(3);
  out.digest = {static_cast<std::uint64_t>(row.integer(4)), static_cast<std::uint64_t>(row.integer(5))};
  out.rules_generation = static_cast<std::uint64_t>(row.integer(6));
  out.schema_revision = static_cast<std::uint32_t>(row.integer(7));
  out.observed_ns = row.integer(8);
  out.external_name = row.text(9);
  out.observed_external_name = row.text(10);
  out.origin = row.text(11);
  out.version = row.text(12);
  out.status = row.text(13);
  DRIFTD_TRY(out.metadata, parse_strings(row.text(14)));
  DRIFTD_TRY(out.was_unread, parse_list(row.text(15)));
  out.baseline = row.maybe_text(16);
  out.observed = row.maybe_text(17);
  return out;
}

Result<core::StoredResource> read_resource(Connection& db, std::int64_t backend, const core::ResourceId& id) {
  auto query = db.statement("SELECT " DRIFTD_RESOURCE_COLUMNS ", crc IS " DRIFTD_CRC_RESOURCE
                            " FROM resource r "
                            "WHERE r.backend = ? AND r.kind = ? AND r.name = ?");
  DRIFTD_TRY(const bool found, query.bind(backend, id.kind, id.id).next());
  if (!found) {
    core::StoredResource absent;
    absent.id = id;
    return absent;
  }
  if (query.integer(kResourceColumns) == 0) return fail(wrong_checksum("resource " + core::render(id)));
  DRIFTD_TRY(auto out, read_resource_row(query));
  if (query.integer(kResourceColumns - 1) == 0) return out;
  DRIFTD_TRY(out.open, read_open_drifts(db, query.integer(0)));
  return out;
}

}  // namespace driftd::store
