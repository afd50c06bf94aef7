// SPDX-License-Identifier: Apache-2.0
// A store that takes more room than it may: history goes before its time, the oldest first.
#include <algorithm>
#include <utility>

#include "store/gaps.hpp"

namespace driftd::store {
namespace {

constexpr int kShrinkSlice = 1'000;

/// Pages of store.db that hold something, in bytes. Deleting frees pages for what comes next; the file does not get smaller.
Result<std::int64_t> bytes_in_use(Connection& db) {
  DRIFTD_TRY(const auto pages, db.integer("PRAGMA page_count"));
  DRIFTD_TRY(const auto free, db.integer("PRAGMA freelist_count"));
  DRIFTD_TRY(const auto size, db.integer("PRAGMA page_size"));
  return (pages - free) * size;
}

struct OldEvent {
  std::int64_t seq = 0;
  Nanos recorded_ns = 0;
};

Result<std::vector<OldEvent>> next_candidates(SqliteStore::State& state) {
  std::vector<OldEvent> out;
  auto query = state.db->statement("SELECT seq, recorded_ns FROM event WHERE seq > ? ORDER BY seq LIMIT ?");
  query.bind(state.shrink.looked_to, kShrinkSlice);
  while (true) {
    DRIFTD_TRY(const bool more, query.next());
    if (!more) return out;
    out.push_back({query.integer(0), query.integer(1)});
  }
}

/// Whether an event has to stay: a sink still waits for it, or it is a dead letter and those are spared.
bool stays(const std::vector<Outstanding>& outstanding, bool spare_dead) {
  return std::any_of(outstanding.begin(), outstanding.end(), [&](const Outstanding& one) { return spare_dead || !one.dead; });
}

/// Drifts that ended until then: they are as old as the events that go.
Result<std::int64_t> forget_drifts(Connection& db, Nanos until) {
  constexpr std::string_view sql =
      "DELETE FROM drift WHERE id IN (SELECT id FROM drift WHERE open = 0 AND ended_ns <= ? ORDER BY ended_ns LIMIT ?)";
  DRIFTD_CHECK(db.statement(sql).bind(until, kShrinkSlice).run());
  return db.changes();
}

/// Where a pass over all events ended and the store is still too large: the next one takes dead letters too, and behind that
/// one nothing is left that may go.
bool begin_again(SqliteStore::State& state) {
  auto& at = state.shrink;
  at.looked_to = 0;
  at.spares_dead = at.forgot > 0 || !at.spares_dead;
  const bool found = std::exchange(at.forgot, 0) > 0;
  return found || !at.spares_dead;
}

Result<Shrunk> shrink_by_a_slice(SqliteStore::State& state, std::int64_t max_bytes) {
  Shrunk out;
  auto& at = state.shrink;
  DRIFTD_TRY(out.bytes, bytes_in_use(*state.db));
  if (out.bytes <= max_bytes) {
    at = {};
    return out;
  }
  DRIFTD_TRY(const auto candidates, next_candidates(state));
  Gaps gaps;
  for (const auto& event : candidates) {
    at.looked_to = event.seq;
    DRIFTD_TRY(const auto outstanding, outstanding_of(*state.db, event.seq));
    if (stays(outstanding, at.spares_dead)) continue;
    DRIFTD_CHECK(forget_event(*state.db, event.seq, outstanding, gaps));
    ++out.events;
    out.until = std::max(out.until, event.recorded_ns);
  }
  DRIFTD_CHECK(tell(state, gaps, {"store_full", "they were dead letters, and the store takes more than retention.max_bytes"}));
  const bool at_end = candidates.size() < static_cast<std::size_t>(kShrinkSlice);
  DRIFTD_TRY(out.drifts, forget_drifts(*state.db, at_end ? state.clock.wall() : candidates.back().recorded_ns));
  at.forgot += out.events + out.drifts;
  DRIFTD_TRY(out.bytes, bytes_in_use(*state.db));
  out.more = out.bytes > max_bytes && (!at_end || out.drifts == kShrinkSlice || begin_again(state));
  return out;
}

}  // namespace

Task<Result<Shrunk>> SqliteStore::shrink(std::int64_t max_bytes) {
  const auto state = state_;
  const auto out = std::make_shared<Shrunk>();
  Work work = [state, out, max_bytes]() -> Status {
    DRIFTD_TRY(*out, shrink_by_a_slice(*state, max_bytes));
    return {};
  };
  DRIFTD_CO_CHECK(co_await in_group(state, std::move(work)));
  co_return *out;
}

}  // namespace driftd::store
