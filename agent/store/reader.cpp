// SPDX-License-Identifier: Apache-2.0
#include "store/events.hpp"
#include "store/rows.hpp"
#include "store/sinks.hpp"

namespace driftd::store {
namespace {

bool is_glob(const std::string& text) { return text.find('*') != std::string::npos; }

/// Adds a condition on `column` for a name or a glob; an empty one matches all and still takes its parameter.
std::string matches(const char* column, const std::string& pattern) {
  if (pattern.empty()) return " AND ? = ''";
  if (is_glob(pattern)) return std::string(" AND name_matches(?, ") + column + ")";
  return std::string(" AND ? = ") + column;
}

#define DRIFTD_RESOURCES_THAT_COUNT                     \
  " FROM backend b JOIN resource r ON r.backend = b.id " \
  "WHERE b.deleted_ns IS NULL AND (r.present = 1 OR r.baseline IS NOT NULL OR r.has_open = 1)"

Result<std::vector<core::ResourceRow>> read_resources(Connection& db, const std::string& backend,
                                                      const std::string& kind, int limit) {
  std::vector<core::ResourceRow> out;
  const std::string sql = "SELECT " DRIFTD_RESOURCE_COLUMNS
                          ", b.name" DRIFTD_RESOURCES_THAT_COUNT +
                          matches("b.name", backend) + matches("r.kind", kind) +
                          " ORDER BY b.name, r.kind, r.name LIMIT ?";
  auto query = db.statement(sql);
  query.bind(backend, kind, limit);
  while (true) {
    DRIFTD_TRY(const bool more, query.next());
    if (!more) return out;
    core::ResourceRow row;
    DRIFTD_TRY(row.resource, read_resource_row(query));
    DRIFTD_TRY(row.resource.open, read_open_drifts(db, query.integer(0)));
    row.backend = query.text(kResourceColumns);
    out.push_back(std::move(row));
  }
}

std::string status_of(const core::DriftFilter& filter) {
  return filter.status ? std::string(core::render(*filter.status)) : std::string();
}

/// Takes backend, kind, id, status_of() and drift.
std::string drifts_where(const core::DriftFilter& filter) {
  std::string sql = " FROM drift d JOIN backend b ON b.uid = d.backend WHERE 1" + matches("b.name", filter.backend) +
                    matches("d.kind", filter.kind) + matches("d.name", filter.id);
  sql += filter.status ? " AND d.status = ?" : " AND ? = ''";
  sql += " AND instr(d.id, ?) = 1";  // true for an empty text
  if (!filter.status && !filter.all) sql += " AND d.open = 1";
  return sql;
}

Result<std::vector<core::DriftRow>> read_drifts(Connection& db, const core::DriftFilter& filter) {
  std::vector<core::DriftRow> out;
  const std::string sql =
      "SELECT " DRIFTD_DRIFT_COLUMNS ", b.name" + drifts_where(filter) + " ORDER BY d.opened_ns, d.id LIMIT ?";
  auto query = db.statement(sql);
  query.bind(filter.backend, filter.kind, filter.id, status_of(filter), filter.drift, filter.limit);
  while (true) {
    DRIFTD_TRY(const bool more, query.next());
    if (!more) return out;
    core::DriftRow row;
    DRIFTD_TRY(row.drift, read_drift(query));
    row.backend = query.text(kDriftColumns);
    out.push_back(std::move(row));
  }
}

Result<EventPage> read_after(Connection& db, std::int64_t after, int limit) {
  auto query = db.statement("SELECT " DRIFTD_EVENT_COLUMNS " FROM event e WHERE e.seq > ? ORDER BY e.seq");
  query.bind(after);
  return read_events(query, static_cast<std::size_t>(std::max(limit, 0)));
}

Result<EventPage> read_last(Connection& db, int limit) {
  auto query = db.statement("SELECT " DRIFTD_EVENT_COLUMNS " FROM event e ORDER BY e.seq DESC");
  auto page = read_events(query, static_cast<std::size_t>(std::max(limit, 0)));
  if (page) std::reverse(page->events.begin(), page->events.end());
  return page;
}

struct DeadPage {
  EventPage page;
  std::vector<core::DeadLetter> letters;
};
Result<DeadPage> read_dead(Connection& db, const std::string& sink, int limit) {
  DeadPage out;
  const std::string sql = "SELECT " DRIFTD_EVENT_COLUMNS
                          ", s.name, d.attempts, d.error FROM delivery d "
                          "JOIN sink s ON s.id = d.sink JOIN event e ON e.seq = d.seq WHERE d.dead = 1" +
                          matches("s.name", sink) + " ORDER BY s.name, d.seq LIMIT ?";
  auto query = db.statement(sql);
  query.bind(sink, limit);
  while (true) {
    DRIFTD_TRY(const bool more, query.next());
    if (!more) return out;
    if (!read_event(query, out.page)) continue;
    out.letters.push_back({query.text(kEventColumns), std::move(out.page.events.back()),
                           static_cast<int>(query.integer(kEventColumns + 1)), query.text(kEventColumns + 2)});
    out.page.events.clear();
  }
}

Result<std::int64_t> first_integer(Statement& query) {
  DRIFTD_TRY(const bool found, query.next());
  return found ? query.integer(0) : 0;
}

Result<std::int64_t> count_rows(Connection& db, const core::Reader::Count& what) {
  using Of = core::Reader::Count::Of;
  const core::DriftFilter& filter = what.filter;
  switch (what.of) {
    case Of::resources: {
      const std::string sql = "SELECT count(*)" DRIFTD_RESOURCES_THAT_COUNT + matches("b.name", filter.backend) +
                              matches("r.kind", filter.kind) + matches("r.name", filter.id);
      auto query = db.statement(sql);
      return first_integer(query.bind(filter.backend, filter.kind, filter.id));
    }
    case Of::drifts: {
      const std::string sql = "SELECT count(*)" + drifts_where(filter);
      auto query = db.statement(sql);
      return first_integer(query.bind(filter.backend, filter.kind, filter.id, status_of(filter), filter.drift));
    }
    case Of::events: {
      auto query = db.statement("SELECT count(*) FROM event WHERE seq > ?");
      return first_integer(query.bind(what.after));
    }
    case Of::dead_letters: {
      const std::string sql =
          "SELECT count(*) FROM delivery d JOIN sink s ON s.id = d.sink JOIN event e ON e.seq = d.seq WHERE d.dead = 1" +
          matches("s.name", filter.backend);
      auto query = db.statement(sql);
      return first_integer(query.bind(filter.backend));
    }
    case Of::audit: break;
  }
  return db.integer("SELECT count(*) FROM audit");
}

}  // namespace

Task<Result<std::vector<core::ResourceRow>>> SqliteStore::resources(std::string backend, std::string kind, int limit) {
  auto read = [backend = std::move(backend), kind = std::move(kind), limit](Connection& db) {
    return read_resources(db, backend, kind, limit);
  };
  auto rows = co_await beside(state_, std::move(read));
  co_return rows;
}

Task<Result<std::vector<core::DriftRow>>> SqliteStore::drifts(core::DriftFilter filter) {
  auto read = [filter = std::move(filter)](Connection& db) { return read_drifts(db, filter); };
  auto rows = co_await beside(state_, std::move(read));
  co_return rows;
}

Task<Result<std::vector<core::StoredEvent>>> SqliteStore::events(std::int64_t after_seq, int limit) {
  const auto state = state_;
  auto read = [after_seq, limit](Connection& db) { return read_after(db, after_seq, limit); };
  auto page = co_await beside(state, std::move(read));
  auto events = co_await without_bad(state, std::move(page));
  co_return events;
}

Task<Result<std::vector<core::StoredEvent>>> SqliteStore::last_events(int limit) {
  const auto state = state_;
  auto read = [limit](Connection& db) { return read_last(db, limit); };
  auto page = co_await beside(state, std::move(read));
  auto events = co_await without_bad(state, std::move(page));
  co_return events;
}

Task<Result<std::vector<core::DeadLetter>>> SqliteStore::dead_letters(std::string sink, int limit) {
  const auto state = state_;
  auto read = [sink = std::move(sink), limit](Connection& db) { return read_dead(db, sink, limit); };
  DRIFTD_CO_TRY(auto dead, co_await beside(state, std::move(read)));
  DRIFTD_CO_CHECK(co_await without_bad(state, std::move(dead.page)));
  co_return std::move(dead.letters);
}

Task<Result<std::vector<core::SinkBook>>> SqliteStore::books() {
  auto read = [](Connection& db) { return read_books(db); };
  auto books = co_await beside(state_, std::move(read));
  co_return books;
}

Task<Result<std::int64_t>> SqliteStore::count(Count what) {
  auto read = [what = std::move(what)](Connection& db) { return count_rows(db, what); };
  auto rows = co_await beside(state_, std::move(read));
  co_return rows;
}

}  // namespace driftd::store
