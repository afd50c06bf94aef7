// SPDX-License-Identifier: Apache-2.0
#include "store/change_log.hpp"

#include "store/enforcements.hpp"
#include "store/events.hpp"

namespace driftd::store {
namespace {

constexpr std::string_view kNewest = "change_log_newest", kSettled = "change_log_acked",
                           kRefused = "change_log_refused", kDropped = "change_log_dropped";
constexpr std::size_t kRowBytes = 1'000;  // of an entry beside its two bodies

Result<std::int64_t> number(Connection& db, std::string_view key) {
  auto query = db.statement("SELECT value FROM meta WHERE key = ?");
  DRIFTD_TRY(const bool found, query.bind(key).next());
  return found ? query.integer(0) : 0;
}

Status set_number(Connection& db, std::string_view key, std::int64_t value) {
  return db.statement("INSERT OR REPLACE INTO meta (key, value, crc) VALUES (?1, ?2, driftd_crc(?1, ?2))")
      .bind(key, value)
      .run();
}

Status add_to(Connection& db, std::string_view key, std::int64_t more) {
  DRIFTD_TRY(const std::int64_t now, number(db, key));
  return set_number(db, key, now + more);
}

Result<core::ChangeLogPosition> read_position(Connection& db) {
  core::ChangeLogPosition out;
  DRIFTD_TRY(out.newest, number(db, kNewest));
  DRIFTD_TRY(out.settled, number(db, kSettled));
  DRIFTD_TRY(out.refused, number(db, kRefused));
  DRIFTD_TRY(out.dropped, number(db, kDropped));
  auto oldest = db.statement("SELECT ended_ns FROM operation WHERE change_seq > ? ORDER BY change_seq LIMIT 1");
  DRIFTD_TRY(const bool found, oldest.bind(out.settled).next());
  if (found) out.oldest_ns = oldest.integer(0);
  return out;
}

struct Window {
  std::int64_t after = 0;
  int limit = 0;
  std::size_t max_bytes = 0;
};

Result<std::vector<core::ChangeEntry>> read_entries(Connection& db, Window window) {
  std::vector<core::ChangeEntry> out;
  std::size_t read = 0;
  auto query = db.statement("SELECT " DRIFTD_OPERATION_COLUMNS
                            ", change_seq FROM operation WHERE change_seq > ? ORDER BY change_seq LIMIT ?");
  query.bind(window.after, window.limit);
  while (read < window.max_bytes) {
    DRIFTD_TRY(const bool more, query.next());
    if (!more) break;
    core::ChangeEntry one;
    one.operation = read_what_is_whole(query, one.damage);
    one.sequence = query.integer(31);
    read += one.operation.desired.size() + one.operation.observed.size() + kRowBytes;
    out.push_back(std::move(one));
  }
  return out;
}

core::AgentEvent gap_event(std::int64_t count, const std::string& entries, const std::string& why,
                           const std::string& reason) {
  core::AgentEvent out;
  out.what = "gap";
  out.message = "the change log lacks " + std::to_string(count) + " entries (" + entries + "): " + why +
                "; `driftd operations` still shows the operations";
  out.details = {{"sink", "change_log"}, {"count", std::to_string(count)}, {"entries", entries}, {"reason", reason}};
  return out;
}

Status write_settlement(SqliteStore::State& state, const core::ChangeLogSettlement& settlement) {
  Connection& db = *state.db;
  DRIFTD_TRY(const std::int64_t now, number(db, kSettled));
  if (settlement.settled > now) DRIFTD_CHECK(set_number(db, kSettled, settlement.settled));
  for (const auto& one : settlement.refused) {
    const std::string which = std::to_string(one.sequence) + ", operation " + one.operation;
    DRIFTD_CHECK(insert_own_event(state, gap_event(1, which, "the receiver refuses it: " + one.why, "refused")));
  }
  if (settlement.refused.empty()) return {};
  return add_to(db, kRefused, static_cast<std::int64_t>(settlement.refused.size()));
}

/// The entries that must go so that the rest takes `max_bytes`.
struct Excess {
  std::int64_t count = 0, from = 0, to = 0;
};

Result<Excess> find_excess(Connection& db, std::int64_t settled, std::int64_t max_bytes) {
  Excess out;
  std::int64_t bytes = 0;
  {
    auto sum = db.statement("SELECT sum(change_bytes) FROM operation WHERE change_seq > ?");
    DRIFTD_TRY([[maybe_unused]] const bool found, sum.bind(settled).next());
    bytes = sum.integer(0);
  }
  auto query = db.statement("SELECT change_seq, change_bytes FROM operation WHERE change_seq > ? ORDER BY change_seq");
  query.bind(settled);
  while (bytes > max_bytes) {
    DRIFTD_TRY(const bool more, query.next());
    if (!more) break;
    out.to = query.integer(0);
    if (++out.count == 1) out.from = out.to;
    bytes -= query.integer(1);
  }
  return out;
}

Status drop_excess(SqliteStore::State& state, std::int64_t max_bytes, std::int64_t& dropped) {
  Connection& db = *state.db;
  DRIFTD_TRY(const std::int64_t settled, number(db, kSettled));
  DRIFTD_TRY(const Excess excess, find_excess(db, settled, max_bytes));
  if (excess.count == 0) return {};
  dropped = excess.count;
  DRIFTD_CHECK(set_number(db, kSettled, excess.to));
  DRIFTD_CHECK(add_to(db, kDropped, excess.count));
  const std::string which = std::to_string(excess.from) + " to " + std::to_string(excess.to);
  const std::string why =
      "they were not sent, and more than change_log.max_backlog_bytes (" + std::to_string(max_bytes) + ") would wait";
  return insert_own_event(state, gap_event(excess.count, which, why, "backlog"));
}

}  // namespace

Result<bool> has_ended(Connection& db, const std::string& operation) {
  auto query = db.statement("SELECT open FROM operation WHERE id = ?");
  DRIFTD_TRY(const bool found, query.bind(operation).next());
  return found && query.integer(0) == 0;
}

Status log_change(SqliteStore::State& state, const core::Enforcement& operation) {
  const auto& logs = state.settings.logs_changes;
  if (core::is_open(operation.state) || operation.attempts == 0 || !logs || !logs(operation.provider)) return {};
  Connection& db = *state.db;
  DRIFTD_TRY(const std::int64_t newest, number(db, kNewest));
  DRIFTD_CHECK(set_number(db, kNewest, newest + 1));
  return db
      .statement(
          "UPDATE operation SET change_seq = ?2, change_bytes = length(desired) + length(observed) + ?3 WHERE id "
          "= ?1")
      .bind(operation.id, newest + 1, kRowBytes)
      .run();
}

namespace {

class ChangeLogRows final : public core::ChangeLogStore {
 public:
  explicit ChangeLogRows(StatePtr state) : state_(std::move(state)) {}
  Task<Result<core::ChangeLogPosition>> position() override;
  Task<Result<std::vector<core::ChangeEntry>>> after(std::int64_t sequence, int limit, std::size_t max_bytes) override;
  Task<Status> settle(core::ChangeLogSettlement settlement) override;
  Task<Result<std::int64_t>> limit(std::int64_t max_bytes) override;

 private:
  StatePtr state_;
};

Task<Result<core::ChangeLogPosition>> ChangeLogRows::position() {
  auto read = [](Connection& db) { return read_position(db); };
  auto out = co_await read_on_io_pool(state_, std::move(read));
  co_return out;
}

Task<Result<std::vector<core::ChangeEntry>>> ChangeLogRows::after(std::int64_t sequence, int limit,
                                                                  std::size_t max_bytes) {
  const Window window{sequence, limit, max_bytes};
  auto read = [window](Connection& db) { return read_entries(db, window); };
  auto out = co_await read_on_io_pool(state_, std::move(read));
  co_return out;
}

/// A kill of the process loses nothing of it. After a power loss, what was settled last is sent again.
Task<Status> ChangeLogRows::settle(core::ChangeLogSettlement settlement) {
  const auto state = state_;
  const bool durable = !settlement.refused.empty();
  Work work = [state, all = std::move(settlement)] { return write_settlement(*state, all); };
  const Status done = co_await in_group(state, std::move(work), durable);
  co_return done;
}

Task<Result<std::int64_t>> ChangeLogRows::limit(std::int64_t max_bytes) {
  const auto state = state_;
  auto look = [max_bytes](Connection& db) -> Result<bool> {  // no transaction: mostly there is nothing to do
    DRIFTD_TRY(const std::int64_t settled, number(db, kSettled));
    DRIFTD_TRY(const Excess excess, find_excess(db, settled, max_bytes));
    return excess.count > 0;
  };
  DRIFTD_CO_TRY(const bool full, co_await read_on_io_pool(state, std::move(look)));
  if (!full) co_return 0;
  const auto dropped = std::make_shared<std::int64_t>(0);
  Work work = [state, dropped, max_bytes] { return drop_excess(*state, max_bytes, *dropped); };
  DRIFTD_CO_CHECK(co_await in_group(state, std::move(work)));
  co_return *dropped;
}

}  // namespace

std::unique_ptr<core::ChangeLogStore> SqliteStore::change_log() { return std::make_unique<ChangeLogRows>(state_); }

}  // namespace driftd::store
