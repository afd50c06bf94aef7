// SPDX-License-Identifier: Apache-2.0
// Subscriptions of the gRPC API, and the log that its streams read.
#include <charconv>

#include "store/audit.hpp"
#include "store/checksums.hpp"
#include "store/events.hpp"
#include "store/fields.hpp"

namespace driftd::store {
namespace {

Result<std::vector<core::ChangeType>> parse_types(const std::string& text) {
  std::vector<core::ChangeType> out;
  DRIFTD_TRY(const auto numbers, parse_list(text));
  for (const auto& number : numbers) {
    int value = 0;
    const auto [end, code] = std::from_chars(number.data(), number.data() + number.size(), value);
    if (code != std::errc{} || *end != '\0') return fail(Code::corrupt, "'" + number + "' is not an event type");
    out.push_back(static_cast<core::ChangeType>(value));
  }
  return out;
}

std::string to_text(const std::vector<core::ChangeType>& types) {
  std::vector<std::string> numbers;
  for (const auto type : types) numbers.push_back(std::to_string(static_cast<int>(type)));
  return store::to_text(numbers);
}

Result<std::vector<core::Subscription>> read_subscriptions(Connection& db) {
  std::vector<core::Subscription> out;
  auto query =
      db.statement("SELECT subscriber, backend_names, event_types, callback_endpoint, crc IS " DRIFTD_CRC_SUBSCRIPTION
                   " FROM subscription ORDER BY subscriber");
  while (true) {
    DRIFTD_TRY(const bool more, query.next());
    if (!more) return out;
    core::Subscription one;
    one.subscriber = query.text(0);
    if (query.integer(4) == 0) return fail(wrong_checksum("the subscription of " + one.subscriber));
    DRIFTD_TRY(one.backend_names, parse_list(query.text(1)));
    DRIFTD_TRY(one.event_types, parse_types(query.text(2)));
    one.callback_endpoint = query.text(3);
    out.push_back(std::move(one));
  }
}

Status write_subscription(Connection& db, const core::Subscription& one) {
  return db
      .statement(
          "INSERT INTO subscription (subscriber, backend_names, event_types, callback_endpoint, crc) "
          "VALUES (?1, ?2, ?3, ?4, driftd_crc(?1, ?2, ?3, ?4)) ON CONFLICT (subscriber) DO UPDATE SET "
          "backend_names = ?2, event_types = ?3, callback_endpoint = ?4, crc = driftd_crc(?1, ?2, ?3, ?4)")
      .bind(one.subscriber, store::to_text(one.backend_names), to_text(one.event_types), one.callback_endpoint)
      .run();
}

struct LogPage {
  EventPage page;
  core::LogSlice slice;
};

Result<LogPage> read_log(Connection& db, std::int64_t after, int limit) {
  LogPage out;
  DRIFTD_TRY(out.slice.newest, db.integer("SELECT max(seq) FROM sqlite_sequence WHERE name = 'event'"));
  DRIFTD_TRY(out.slice.oldest, db.integer("SELECT coalesce((SELECT min(seq) FROM event), -1)"));
  if (out.slice.oldest < 0) out.slice.oldest = out.slice.newest + 1;
  DRIFTD_TRY(const auto incarnation, db.integer("SELECT max(value) FROM meta WHERE key = 'incarnation'"));
  out.slice.incarnation = static_cast<std::uint64_t>(incarnation);
  auto query = db.statement("SELECT " DRIFTD_EVENT_COLUMNS " FROM event e WHERE e.seq > ? ORDER BY e.seq");
  query.bind(after);
  DRIFTD_TRY(out.page, read_events(query, static_cast<std::size_t>(std::max(limit, 0)), kPageBytes));
  return out;
}

struct LogPlace {
  std::int64_t seq = 0;  ///< 0: there is no such event
  std::uint64_t incarnation = 0;
};
Result<LogPlace> first_from(Connection& db, std::int64_t seq) {
  auto query = db.statement("SELECT seq, incarnation FROM event WHERE seq >= ? ORDER BY seq LIMIT 1");
  DRIFTD_TRY(const bool found, query.bind(seq).next());
  return found ? LogPlace{query.integer(0), static_cast<std::uint64_t>(query.integer(1))} : LogPlace{};
}

/// Bisects: incarnations rise with the numbers, and no index orders by them.
Result<std::int64_t> read_first_above(Connection& db, std::uint64_t incarnation) {
  DRIFTD_TRY(const auto newest, db.integer("SELECT max(seq) FROM sqlite_sequence WHERE name = 'event'"));
  std::int64_t low = 1, high = newest + 1;  // the answer is in [low, high]
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    DRIFTD_TRY(const LogPlace place, first_from(db, middle));
    if (place.seq == 0 || place.incarnation > incarnation) {
      high = middle;
    } else {
      low = place.seq + 1;
    }
  }
  DRIFTD_TRY(const LogPlace place, first_from(db, low));
  return place.seq == 0 ? newest + 1 : place.seq;
}

}  // namespace

Task<Result<core::LogSlice>> SqliteStore::log(std::int64_t after_seq, int limit) {
  const auto state = state_;
  auto read = [after_seq, limit](Connection& db) { return read_log(db, after_seq, limit); };
  DRIFTD_CO_TRY(auto log, co_await read_on_io_pool(state, std::move(read)));
  DRIFTD_CO_TRY(log.slice.events, co_await quarantine_bad(state, std::move(log.page)));
  co_return std::move(log.slice);
}

Task<Result<std::int64_t>> SqliteStore::first_above_incarnation(std::uint64_t incarnation) {
  auto read = [incarnation](Connection& db) { return read_first_above(db, incarnation); };
  auto seq = co_await read_on_io_pool(state_, std::move(read));
  co_return seq;
}

Task<Result<std::vector<core::Subscription>>> SqliteStore::subscriptions() {
  auto read = [](Connection& db) { return read_subscriptions(db); };
  auto rows = co_await on_store(state_, std::move(read));
  co_return rows;
}

Task<Status> SqliteStore::put_subscription(core::Subscription subscription, core::AuditEntry line) {
  const auto state = state_;
  const auto in = std::make_shared<core::Subscription>(std::move(subscription));
  const auto said = std::make_shared<core::AuditEntry>(std::move(line));
  Work work = [state, in, said]() -> Status {
    DRIFTD_CHECK(write_subscription(*state->db, *in));
    return write_audit(*state, *said);
  };
  auto outcome = co_await in_group(state, std::move(work));
  co_return outcome;
}

Task<Status> SqliteStore::delete_subscription(std::string subscriber, core::AuditEntry line) {
  const auto state = state_;
  const auto in = std::make_shared<std::string>(std::move(subscriber));
  const auto said = std::make_shared<core::AuditEntry>(std::move(line));
  Work work = [state, in, said]() -> Status {
    DRIFTD_CHECK(state->db->statement("DELETE FROM subscription WHERE subscriber = ?").bind(*in).run());
    return write_audit(*state, *said);
  };
  auto outcome = co_await in_group(state, std::move(work));
  co_return outcome;
}

}  // namespace driftd::store
