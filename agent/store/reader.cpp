// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "store/events.hpp"
#include "store/rows.hpp"
#include "store/sinks.hpp"

namespace driftd::store {
namespace {

bool is_glob(const std::string& text) { return text.find('*') != std::string::npos; }

/// Adds a condition on `column` for a name or a glob. An empty one matches everything and still needs its parameter.
std::string matches(const char* column, const std::string& pattern) {
  if (pattern.empty()) return " AND ? = ''";
  if (is_glob(pattern)) return std::string(" AND name_matches(?, ") + column + ")";
  return std::string(" AND ? = ") + column;
}

#define DRIFTD_RESOURCES_THAT_COUNT                      \
  " FROM backend b JOIN resource r ON r.backend = b.id " \
  "WHERE b.deleted_ns IS NULL AND (r.present = 1 OR r.baseline IS NOT NULL OR r.has_open = 1)"

Result<std::vector<core::ResourceRow>> read_resources(Connection& db, const std::string& backend,
                                                      const std::string& kind, int limit) {
  std::vector<core::ResourceRow> out;
  const std::string sql = "SELECT " DRIFTD_RESOURCE_COLUMNS ", b.name" DRIFTD_RESOURCES_THAT_COUNT +
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

constexpr std::size_t kMaxRead = 512u << 20;  ///< maximum bytes that one list reads
constexpr std::size_t kSliceRows = 256;

std::size_t bytes_of(const core::ResourceRow& row) {
  const auto& one = row.resource;
  return one.status.size() + (one.baseline ? one.baseline->size() : 0) + (one.observed ? one.observed->size() : 0);
}

std::size_t bytes_of(const core::DriftRow& row) {
  std::size_t bytes = 0;
  for (const auto& one : row.drift.changes) {
    bytes +=
        one.path.size() + (one.old_value ? one.old_value->size() : 0) + (one.new_value ? one.new_value->size() : 0);
  }
  return bytes;
}

/// The keys of a list's rows at its beginning. Rows that have left the list since then are skipped.
template <class Key>
struct Walk {
  std::vector<Key> keys;
  std::size_t at = 0, read = 0;
  bool done() const { return at == keys.size() || read >= kMaxRead; }
};

/// Returns the next rows of `walk` until a page is full. `read_one` (Connection&, Key → Result<optional<Row>>) reads
/// one.
template <class Row, class Key, class ReadOne>
Result<std::vector<Row>> read_slice(Connection& db, Walk<Key>& walk, const ReadOne& read_one) {
  std::vector<Row> out;
  std::size_t bytes = 0;
  while (!walk.done() && out.size() < kSliceRows && bytes < kPageBytes) {
    DRIFTD_TRY(std::optional<Row> row, read_one(db, walk.keys[walk.at]));
    ++walk.at;
    if (!row) continue;
    bytes += bytes_of(*row);
    out.push_back(std::move(*row));
  }
  walk.read += bytes;
  return out;
}

/// Reads each page in a read transaction of its own, which does not include what `take` does with the rows.
template <class Row, class Key, class ReadOne>
Task<Result<bool>> in_slices(StatePtr state, std::vector<Key> keys, ReadOne read_one,
                             core::Reader::RowHandler<Row> take) {
  const auto walk = std::make_shared<Walk<Key>>();
  walk->keys = std::move(keys);
  while (!walk->done()) {
    auto read = [walk, read_one](Connection& db) { return read_slice<Row>(db, *walk, read_one); };
    DRIFTD_CO_TRY(auto rows, co_await read_on_io_pool(state, std::move(read)));
    const auto slice = std::make_shared<std::vector<Row>>(std::move(rows));
    auto pass = [slice, take] {
      return std::all_of(slice->begin(), slice->end(), [&](Row& row) { return take(std::move(row)); });
    };
    const bool more = co_await run_on(state->io_pool, std::move(pass));
    if (!more) co_return true;
  }
  co_return walk->at < walk->keys.size();
}

std::string resources_where(const core::DriftFilter& filter) {
  return DRIFTD_RESOURCES_THAT_COUNT + matches("b.name", filter.backend) + matches("r.kind", filter.kind) +
         matches("r.name", filter.id);
}

Result<std::vector<std::int64_t>> resource_keys(Connection& db, const core::DriftFilter& filter) {
  std::vector<std::int64_t> out;
  const std::string sql = "SELECT r.id" + resources_where(filter) + " ORDER BY b.name, r.kind, r.name LIMIT ?";
  auto query = db.statement(sql);
  query.bind(filter.backend, filter.kind, filter.id, filter.limit);
  while (true) {
    DRIFTD_TRY(const bool more, query.next());
    if (!more) return out;
    out.push_back(query.integer(0));
  }
}

Status read_open_ids(Connection& db, std::int64_t resource, std::vector<core::Drift>& out) {
  auto query = db.statement("SELECT id FROM drift WHERE resource = ? AND open = 1 ORDER BY position");
  query.bind(resource);
  while (true) {
    DRIFTD_TRY(const bool more, query.next());
    if (!more) return {};
    out.emplace_back().id = query.text(0);
  }
}

Result<std::optional<core::ResourceRow>> resource_at(Connection& db, std::int64_t key) {
  auto query = db.statement("SELECT " DRIFTD_RESOURCE_COLUMNS ", b.name" DRIFTD_RESOURCES_THAT_COUNT " AND r.id = ?");
  DRIFTD_TRY(const bool found, query.bind(key).next());
  if (!found) return std::optional<core::ResourceRow>();
  core::ResourceRow row;
  DRIFTD_TRY(row.resource, read_resource_row(query));
  row.backend = query.text(kResourceColumns);
  DRIFTD_CHECK(read_open_ids(db, key, row.resource.open));
  return std::optional(std::move(row));
}

Result<std::vector<std::string>> drift_keys(Connection& db, const core::DriftFilter& filter) {
  std::vector<std::string> out;
  const std::string sql = "SELECT d.id" + drifts_where(filter) + " ORDER BY d.opened_ns, d.id LIMIT ?";
  auto query = db.statement(sql);
  query.bind(filter.backend, filter.kind, filter.id, status_of(filter), filter.drift, filter.limit);
  while (true) {
    DRIFTD_TRY(const bool more, query.next());
    if (!more) return out;
    out.push_back(query.text(0));
  }
}

Result<std::optional<core::DriftRow>> drift_at(Connection& db, const core::DriftFilter& filter,
                                               const std::string& key) {
  const std::string sql = "SELECT " DRIFTD_DRIFT_COLUMNS ", b.name" + drifts_where(filter) + " AND d.id = ?";
  auto query = db.statement(sql);
  query.bind(filter.backend, filter.kind, filter.id, status_of(filter), filter.drift, key);
  DRIFTD_TRY(const bool found, query.next());
  if (!found) return std::optional<core::DriftRow>();
  core::DriftRow row;
  DRIFTD_TRY(row.drift, read_drift(query));
  row.backend = query.text(kDriftColumns);
  return std::optional(std::move(row));
}

Result<EventPage> read_after(Connection& db, std::int64_t after, int limit) {
  auto query = db.statement("SELECT " DRIFTD_EVENT_COLUMNS " FROM event e WHERE e.seq > ? ORDER BY e.seq");
  query.bind(after);
  return read_events(query, static_cast<std::size_t>(std::max(limit, 0)), kPageBytes);
}

Result<EventPage> read_last(Connection& db, int limit) {
  auto query = db.statement("SELECT " DRIFTD_EVENT_COLUMNS " FROM event e ORDER BY e.seq DESC");
  auto page = read_events(query, static_cast<std::size_t>(std::max(limit, 0)), kPageBytes);
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
  std::size_t read = 0;
  while (read < kPageBytes) {
    DRIFTD_TRY(const bool more, query.next());
    if (!more) break;
    if (!read_event(query, out.page)) continue;
    read += out.page.events.back().payload.size();
    out.letters.push_back({query.text(kEventColumns), std::move(out.page.events.back()),
                           static_cast<int>(query.integer(kEventColumns + 1)), query.text(kEventColumns + 2)});
    out.page.events.clear();
  }
  return out;
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
      const std::string sql = "SELECT count(*)" + resources_where(filter);
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
          "SELECT count(*) FROM delivery d JOIN sink s ON s.id = d.sink JOIN event e ON e.seq = d.seq WHERE d.dead = "
          "1" +
          matches("s.name", filter.backend);
      auto query = db.statement(sql);
      return first_integer(query.bind(filter.backend));
    }
    case Of::audit:
      break;
  }
  auto lines = db.statement("SELECT count(*) FROM audit WHERE id > ?");
  DRIFTD_CHECK(lines.bind(what.after).next());
  return lines.integer(0);
}

}  // namespace

Task<Result<std::vector<core::ResourceRow>>> SqliteStore::resources(std::string backend, std::string kind, int limit) {
  auto read = [backend = std::move(backend), kind = std::move(kind), limit](Connection& db) {
    return read_resources(db, backend, kind, limit);
  };
  auto rows = co_await read_on_io_pool(state_, std::move(read));
  co_return rows;
}

Task<Result<std::vector<core::DriftRow>>> SqliteStore::drifts(core::DriftFilter filter) {
  auto read = [filter = std::move(filter)](Connection& db) { return read_drifts(db, filter); };
  auto rows = co_await read_on_io_pool(state_, std::move(read));
  co_return rows;
}

Task<Result<bool>> SqliteStore::each_resource(core::DriftFilter filter, RowHandler<core::ResourceRow> take) {
  const auto state = state_;
  auto read = [filter = std::move(filter)](Connection& db) { return resource_keys(db, filter); };
  DRIFTD_CO_TRY(auto keys, co_await read_on_io_pool(state, std::move(read)));
  auto walked = co_await in_slices<core::ResourceRow>(state, std::move(keys), resource_at, std::move(take));
  co_return walked;
}

Task<Result<bool>> SqliteStore::each_drift(core::DriftFilter filter, RowHandler<core::DriftRow> take) {
  const auto state = state_;
  auto read = [filter](Connection& db) { return drift_keys(db, filter); };
  DRIFTD_CO_TRY(auto keys, co_await read_on_io_pool(state, std::move(read)));
  auto read_one = [filter = std::move(filter)](Connection& db, const std::string& key) {
    return drift_at(db, filter, key);
  };
  auto walked = co_await in_slices<core::DriftRow>(state, std::move(keys), std::move(read_one), std::move(take));
  co_return walked;
}

Task<Result<std::vector<core::StoredEvent>>> SqliteStore::events(std::int64_t after_seq, int limit) {
  const auto state = state_;
  auto read = [after_seq, limit](Connection& db) { return read_after(db, after_seq, limit); };
  auto page = co_await read_on_io_pool(state, std::move(read));
  auto events = co_await quarantine_bad(state, std::move(page));
  co_return events;
}

Task<Result<std::vector<core::StoredEvent>>> SqliteStore::last_events(int limit) {
  const auto state = state_;
  auto read = [limit](Connection& db) { return read_last(db, limit); };
  auto page = co_await read_on_io_pool(state, std::move(read));
  auto events = co_await quarantine_bad(state, std::move(page));
  co_return events;
}

Task<Result<std::vector<core::DeadLetter>>> SqliteStore::dead_letters(std::string sink, int limit) {
  const auto state = state_;
  auto read = [sink = std::move(sink), limit](Connection& db) { return read_dead(db, sink, limit); };
  DRIFTD_CO_TRY(auto dead, co_await read_on_io_pool(state, std::move(read)));
  DRIFTD_CO_CHECK(co_await quarantine_bad(state, std::move(dead.page)));
  co_return std::move(dead.letters);
}

Task<Result<std::vector<core::SinkTotals>>> SqliteStore::sink_totals() {
  auto read = [](Connection& db) { return read_totals(db); };
  auto sink_totals = co_await read_on_io_pool(state_, std::move(read));
  co_return sink_totals;
}

Task<Result<std::int64_t>> SqliteStore::count(Count what) {
  auto read = [what = std::move(what)](Connection& db) { return count_rows(db, what); };
  auto rows = co_await read_on_io_pool(state_, std::move(read));
  co_return rows;
}

}  // namespace driftd::store
