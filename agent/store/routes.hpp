// SPDX-License-Identifier: Apache-2.0
// Routes and deliveries that the disk lost are found by the totals of their sinks, and rebuilt from the events.
#pragma once

#include "store/checksums.hpp"

namespace driftd::store {

/// Counts open sinks whose totals do not add up. A route that left its sink or went below the mark is missing from the
/// sum, and so is a lost one.
inline constexpr std::string_view kUnbalancedSinks =
    "SELECT count(*) FROM sink s WHERE s.closed = 0 AND s.emitted <> s.acked + s.dropped + "
    "(SELECT count(*) FROM route r WHERE r.sink = s.id AND r.seq > s.low_water AND r.crc "
    "IS driftd_crc(r.sink, r.seq)) + (SELECT count(*) FROM delivery d WHERE d.sink = s.id AND d.seq <= s.low_water)";
/// Counts deliveries that would wait for ever, because their event is not fetched without its route.
inline constexpr std::string_view kUnroutedDeliveries =
    "SELECT count(*) FROM delivery d WHERE NOT EXISTS (SELECT 1 FROM route r WHERE r.sink = d.sink AND r.seq = d.seq)";

/// Returns the sum of both: 0 if no route and no delivery is missing that a sink has not got.
Result<std::int64_t> count_unaccounted(Connection& db);

/// What rebuild_routes() found.
struct RebuiltRoutes {
  std::int64_t wrong = 0;     ///< routes whose checksum was wrong
  std::int64_t restored = 0;  ///< routes that were written again, wrong and missing ones
};
/// Rebuilds the routes from the events, which record where they were routed, and removes deliveries of events that are
/// gone. Rows of older versions stay if they are right. At worst a dropped dead letter is sent. Does nothing if nothing
/// is wrong or missing. To be called in a transaction, before marks of sinks are taken back: their totals say what is
/// missing.
Result<RebuiltRoutes> rebuild_routes(Connection& db);

/// An open sink that still misses deliveries.
struct Shortfall {
  std::int64_t sink = 0, missing = 0;
  std::string name;
};
/// Returns these sinks, and adds to the totals of the others what was routed to them again.
Result<std::vector<Shortfall>> balance_totals(Connection& db);

}  // namespace driftd::store
