// SPDX-License-Identifier: Apache-2.0
#include "store/routes.hpp"

namespace driftd::store {
namespace {

/// How many events an open sink `sink` has settled, and how many it has not: together as many as were routed to it.
#define DRIFTD_ACCOUNTED                                                                                     \
  "(sink.acked + sink.dropped + (SELECT count(*) FROM route r WHERE r.sink = sink.id AND r.seq > low_water)" \
  " + (SELECT count(*) FROM delivery d WHERE d.sink = sink.id AND d.seq <= low_water))"

}  // namespace

Result<std::int64_t> count_unaccounted(Connection& db) {
  DRIFTD_TRY(const auto sinks, db.integer(kUnbalancedSinks));
  DRIFTD_TRY(const auto deliveries, db.integer(kUnroutedDeliveries));
  return sinks + deliveries;
}

Result<RebuiltRoutes> rebuild_routes(Connection& db) {
  RebuiltRoutes out;
  DRIFTD_TRY(out.wrong, db.integer("SELECT count(*) FROM route WHERE crc IS NOT " DRIFTD_CRC_ROUTE));
  DRIFTD_TRY(const auto unaccounted, count_unaccounted(db));
  if (out.wrong == 0 && unaccounted == 0) return out;
  for (const char* sql :
       {"CREATE TEMP TABLE whole_route AS SELECT sink, seq FROM route WHERE crc IS " DRIFTD_CRC_ROUTE,
        "DELETE FROM route", "INSERT INTO route SELECT sink, seq, " DRIFTD_CRC_ROUTE " FROM whole_route",
        "DROP TABLE whole_route"}) {
    DRIFTD_CHECK(db.execute(sql));
  }
  DRIFTD_CHECK(db.execute(
      "INSERT OR IGNORE INTO route SELECT s.id, e.seq, driftd_crc(s.id, e.seq) FROM event e JOIN sink s ON s.closed = "
      "0 AND instr(',' || e.routed || ',', ',' || s.id || ',') > 0"));
  out.restored = db.changes();
  DRIFTD_CHECK(
      db.execute("DELETE FROM delivery WHERE crc IS " DRIFTD_CRC_DELIVERY
                 " AND NOT EXISTS (SELECT 1 FROM route r WHERE r.sink = delivery.sink AND r.seq = delivery.seq)"));
  return out;
}

Result<std::vector<Shortfall>> balance_totals(Connection& db) {
  std::vector<Shortfall> out;
  {
    auto query = db.statement("SELECT id, emitted - " DRIFTD_ACCOUNTED
                              " AS missing, name FROM sink WHERE closed = 0 AND missing > 0");
    while (true) {
      DRIFTD_TRY(const bool more, query.next());
      if (!more) break;
      out.push_back({query.integer(0), query.integer(1), query.text(2)});
    }
  }
  DRIFTD_CHECK(db.execute("UPDATE sink SET emitted = " DRIFTD_ACCOUNTED
                          ", " DRIFTD_UNSIGN(DRIFTD_CRC_SINK) " WHERE closed = 0 AND emitted < " DRIFTD_ACCOUNTED));
  return out;
}

}  // namespace driftd::store
