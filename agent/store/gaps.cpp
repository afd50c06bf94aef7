// SPDX-License-Identifier: Apache-2.0
#include "store/gaps.hpp"

#include <algorithm>

#include "store/sinks.hpp"

namespace driftd::store {
namespace {

Status write_gap_event(SqliteStore::State& state, const std::string& sink, const Gap& gap, const Gaps& all) {
  core::AgentEvent event;
  event.what = "gap";
  event.message = "sink " + sink + " never gets " + std::to_string(gap.count) + " events (from " +
                  std::to_string(gap.from) + " to " + std::to_string(gap.to) + "): " + std::string(all.sentence);
  event.details = {{"sink", sink},
                   {"from", std::to_string(gap.from)},
                   {"to", std::to_string(gap.to)},
                   {"count", std::to_string(gap.count)},
                   {"reason", std::string(all.reason)}};
  return insert_own_event(state, std::move(event));
}

std::string mark_of(std::int64_t sink) { return "settled_and_deleted_to/" + std::to_string(sink); }

Status keep_mark(Connection& db, std::int64_t sink, std::int64_t seq) {
  constexpr std::string_view sql =
      "INSERT INTO meta (key, value, crc) VALUES (?1, ?2, driftd_crc(?1, ?2)) ON CONFLICT (key) DO UPDATE SET "
      "value = excluded.value, crc = excluded.crc WHERE excluded.value > value";
  return db.statement(sql).bind(mark_of(sink), seq).run();
}

/// Returns the last event that was deleted after this sink had settled it. A store whose last deletion was by an older
/// driftd has no mark: it is anything before its oldest event then.
Result<std::int64_t> read_mark(Connection& db, std::int64_t sink) {
  auto query = db.statement(
      "SELECT coalesce((SELECT value FROM meta WHERE key = ?), (SELECT min(seq) - 1 FROM event), "
      "(SELECT seq FROM sqlite_sequence WHERE name = 'event'), 0)");
  DRIFTD_TRY(const bool found, query.bind(mark_of(sink)).next());
  return found ? query.integer(0) : 0;
}

/// Returns the number of events in the store that a sink has settled.
Result<std::int64_t> settled_in_store(Connection& db, std::int64_t sink) {
  auto query = db.statement(
      "SELECT (SELECT count(*) FROM route WHERE sink = s.id AND seq <= s.low_water) - "
      "(SELECT count(*) FROM delivery WHERE sink = s.id AND seq <= s.low_water) FROM sink s WHERE s.id = ?");
  DRIFTD_TRY(const bool found, query.bind(sink).next());
  return found ? query.integer(0) : 0;
}

}  // namespace

Status forget_event(Connection& db, std::int64_t seq, const std::vector<Outstanding>& outstanding, Gaps& gaps) {
  for (const auto& sink : outstanding) {
    Gap& gap = gaps.of[sink.name];
    if (gap.count == 0) gap.from = seq;
    gap.to = seq;
    ++gap.count;
  }
  DRIFTD_TRY(const auto settled, drop_routes(db, seq, outstanding, gaps.reason));
  for (const auto sink : settled) gaps.settled_to[sink] = std::max(gaps.settled_to[sink], seq);
  return db.statement("DELETE FROM event WHERE seq = ?").bind(seq).run();
}

Status write_gap_events(SqliteStore::State& state, const Gaps& gaps) {
  for (const auto& [sink, seq] : gaps.settled_to) DRIFTD_CHECK(keep_mark(*state.db, sink, seq));
  for (const auto& [sink, gap] : gaps.of) DRIFTD_CHECK(write_gap_event(state, sink, gap, gaps));
  return {};
}

Result<Gap> deleted_after(Connection& db, std::int64_t sink, std::int64_t after, std::int64_t settled) {
  DRIFTD_TRY(const auto here, settled_in_store(db, sink));
  if (settled <= here) return Gap{};
  DRIFTD_TRY(const auto last, read_mark(db, sink));
  if (last <= after) return Gap{};
  return Gap{after + 1, last, std::min(settled - here, last - after)};
}

Status write_loss_event(SqliteStore::State& state, const std::string& sink, const Gap& loss) {
  core::AgentEvent event;
  event.what = "gap";
  event.message = "sink " + sink + " does not get again up to " + std::to_string(loss.count) + " events (from " +
                  std::to_string(loss.from) + " to " + std::to_string(loss.to) +
                  "): its receiver lost what it had acknowledged, and they were deleted since";
  event.details = {{"sink", sink},
                   {"from", std::to_string(loss.from)},
                   {"to", std::to_string(loss.to)},
                   {"count", std::to_string(loss.count)},
                   {"reason", std::string(kLostByReceiver)}};
  return insert_own_event(state, std::move(event));
}

}  // namespace driftd::store
