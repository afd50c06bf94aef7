// SPDX-License-Identifier: Apache-2.0
// A CRC-32C over the columns of a row, in its column `crc`, detects bytes that the disk changed before they are judged.
// driftd_crc() is a function of each Connection. Rows of `backend` and `sink` change in part and often: a statement
// that changes one sets `crc` to NULL if it was right, and sign() computes it before the commit. A row that was wrong
// stays wrong until it is mended.
#pragma once

#include "store/sqlite.hpp"

namespace driftd::store {

#define DRIFTD_CRC_META "driftd_crc(key, value)"
#define DRIFTD_CRC_BACKEND                                                                                        \
  "driftd_crc(uid, name, type, provider, registration, system_identity, cursor, watch_cursor, health, sequence, " \
  "deleted_ns, notes)"
#define DRIFTD_CRC_ESTABLISHED "driftd_crc(backend, kind, value)"
#define DRIFTD_CRC_RESOURCE                                                                                  \
  "driftd_crc(backend, kind, name, revision, digest_low, digest_high, rules_generation, present, has_open, " \
  "schema_revision, observed_ns, external_name, observed_external_name, origin, version, status, metadata, " \
  "was_unread, baseline, observed)"
#define DRIFTD_CRC_DRIFT                                                                                              \
  "driftd_crc(id, open, resource, position, backend, kind, name, class, against, action, operation, status, digest, " \
  "opened_ns, updated_ns, stale_since_ns, actor, reason, decided_ns, expires_ns, claimed_by, claim_until_ns, "        \
  "ended_ns, changes, approvals_needed, approvals, former)"
#define DRIFTD_CRC_DECLARATION "driftd_crc(target, kind, name, source, digest_low, digest_high, metadata, body)"
#define DRIFTD_CRC_SINK "driftd_crc(name, closed, low_water, notes, emitted, acked, dropped, drop_reasons)"
#define DRIFTD_CRC_SUBSCRIPTION "driftd_crc(subscriber, backend_names, event_types, callback_endpoint)"
#define DRIFTD_CRC_ROUTE "driftd_crc(sink, seq)"
#define DRIFTD_CRC_DELIVERY "driftd_crc(sink, seq, dead, attempts, next_ns, error, refusals)"

/// To be used in an UPDATE of a backend or sink: `SET …, ` this.
#define DRIFTD_UNSIGN(crc) "crc = CASE WHEN crc IS NULL OR crc IS " crc " THEN NULL ELSE crc END"
/// True for a row of one of those whose checksum is right or missing.
#define DRIFTD_WHOLE(crc) "(crc IS NULL OR crc IS " crc ")"

/// Writes the checksums of the backends and sinks that the open transaction changed.
Status sign(Connection& db);
/// Returns a `corrupt` error that names the row. The transaction that meets it is undone, the rows are mended, and it
/// is repeated.
Error wrong_checksum(const std::string& what);

}  // namespace driftd::store
