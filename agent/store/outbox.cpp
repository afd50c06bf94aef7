// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "store/events.hpp"
#include "store/fields.hpp"
#include "store/sinks.hpp"

namespace driftd::store {
namespace {

using Events = std::vector<core::StoredEvent>;

Result<EventPage> read_routed(Connection& db, const std::string& sink, std::int64_t after, int limit) {
  DRIFTD_TRY(const auto row, find_sink(db, sink));
  auto query = db.statement("SELECT " DRIFTD_ROUTED_COLUMNS
                            " FROM route r LEFT JOIN event e ON e.seq = r.seq "
                            "WHERE r.sink = ? AND r.seq > ? ORDER BY r.seq");
  query.bind(row.id, after);
  return read_events(query, static_cast<std::size_t>(std::max(limit, 0)), core::Outbox::kMaxAnswerBytes);
}

Result<EventPage> read_exact(Connection& db, const std::string& sink, const std::vector<std::int64_t>& seqs) {
  DRIFTD_TRY(const auto row, find_sink(db, sink));
  EventPage page;
  std::size_t bytes = 0;
  for (const auto seq : seqs) {
    if (bytes >= core::Outbox::kMaxAnswerBytes) break;
    auto query = db.statement("SELECT " DRIFTD_ROUTED_COLUMNS
                              " FROM route r LEFT JOIN event e ON e.seq = r.seq "
                              "WHERE r.sink = ? AND r.seq = ?");
    DRIFTD_TRY(const bool found, query.bind(row.id, seq).next());
    if (found && read_event(query, page)) bytes += page.events.back().payload.size();
  }
  return page;
}

Result<std::vector<std::string>> read_names(Connection& db) {
  std::vector<std::string> out;
  auto query = db.statement("SELECT name FROM sink WHERE closed = 0 ORDER BY name");
  while (true) {
    DRIFTD_TRY(const bool more, query.next());
    if (!more) return out;
    out.push_back(query.text(0));
  }
}

/// above this number the distinct events of all sinks are estimated, to save time of the store thread
constexpr std::int64_t kCounted = 10'000;

Result<core::Outbox::Backlog> count_exactly(Connection& db) {
  auto query = db.statement(
      "SELECT count(*), coalesce(sum(length(e.payload)), 0) FROM event e WHERE e.seq IN ("
      "SELECT r.seq FROM sink s CROSS JOIN route r ON r.sink = s.id AND r.seq > s.low_water "
      "LEFT JOIN delivery d ON d.sink = r.sink AND d.seq = r.seq AND d.dead = 1 WHERE d.seq IS NULL "
      "UNION SELECT d.seq FROM delivery d WHERE d.dead = 0)");
  DRIFTD_TRY(const bool found, query.next());
  return found ? core::Outbox::Backlog{query.integer(1), query.integer(0)} : core::Outbox::Backlog{};
}

Result<core::Outbox::Backlog> read_backlog(Connection& db) {
  DRIFTD_TRY(const auto totals, read_totals(db));
  const core::SinkTotals* most = nullptr;
  for (const auto& sink : totals) {
    if (most == nullptr || sink.pending > most->pending) most = &sink;
  }
  if (most == nullptr || most->pending == 0) return core::Outbox::Backlog{};
  if (most->pending <= kCounted) return count_exactly(db);
  auto query = db.statement(
      "SELECT avg(n) FROM (SELECT length(e.payload) AS n FROM sink s JOIN route r ON r.sink = s.id "
      "AND r.seq > s.low_water JOIN event e ON e.seq = r.seq WHERE s.name = ? LIMIT 10000)");
  DRIFTD_TRY(const bool found, query.bind(most->sink).next());
  return core::Outbox::Backlog{(found ? query.integer(0) : 0) * most->pending, most->pending};
}

}  // namespace

Task<Result<Events>> SqliteStore::fetch(std::string sink, std::int64_t after, int limit) {
  const auto state = state_;
  auto read = [sink = std::move(sink), after, limit](Connection& db) { return read_routed(db, sink, after, limit); };
  auto page = co_await on_store(state, std::move(read));
  auto events = co_await quarantine_bad(state, std::move(page));
  co_return events;
}

Task<Result<Events>> SqliteStore::fetch_exact(std::string sink, std::vector<std::int64_t> seqs) {
  const auto state = state_;
  auto read = [sink = std::move(sink), seqs = std::move(seqs)](Connection& db) { return read_exact(db, sink, seqs); };
  auto page = co_await on_store(state, std::move(read));
  auto events = co_await quarantine_bad(state, std::move(page));
  co_return events;
}

Task<Result<std::vector<std::string>>> SqliteStore::sinks() {
  auto read = [](Connection& db) { return read_names(db); };
  auto names = co_await on_store(state_, std::move(read));
  co_return names;
}

Task<Result<core::SinkCursor>> SqliteStore::open_sink(std::string sink) {
  const auto state = state_;
  const auto name = std::make_shared<std::string>(std::move(sink));
  const auto cursor = std::make_shared<core::SinkCursor>();
  Work work = [state, name, cursor]() -> Status {
    DRIFTD_TRY(*cursor, register_sink(*state->db, *name));
    return {};
  };
  DRIFTD_CO_CHECK(co_await in_group(state, std::move(work)));
  co_return std::move(*cursor);
}

Task<Status> SqliteStore::close_sink(std::string sink, bool drop_pending) {
  const auto state = state_;
  const auto name = std::make_shared<std::string>(std::move(sink));
  Work work = [state, name, drop_pending] { return remove_sink(*state, *name, drop_pending); };
  auto outcome = co_await in_group(state, std::move(work));
  co_return outcome;
}

Task<Status> SqliteStore::settle(core::SinkSettlement settlement) {
  const auto state = state_;
  const auto in = std::make_shared<core::SinkSettlement>(std::move(settlement));
  Work work = [state, in] { return apply_settlement(*state, *in); };
  auto outcome = co_await in_group(state, std::move(work), in->durable);
  co_return outcome;
}

Task<Result<core::StoredEvent>> SqliteStore::append(core::EventDraft draft) {
  const auto state = state_;
  const auto in = std::make_shared<core::EventDraft>(std::move(draft));
  const auto out = std::make_shared<core::StoredEvent>();
  Work work = [state, in, out]() -> Status {
    DRIFTD_TRY(*out, insert_event(*state, *in));
    return {};
  };
  DRIFTD_CO_CHECK(co_await in_group(state, std::move(work)));
  co_return std::move(*out);
}

Task<Result<core::Outbox::Backlog>> SqliteStore::backlog() {
  auto read = [](Connection& db) { return read_backlog(db); };
  auto backlog = co_await on_store(state_, std::move(read));
  co_return backlog;
}

}  // namespace driftd::store
