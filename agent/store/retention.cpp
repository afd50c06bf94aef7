// SPDX-License-Identifier: Apache-2.0
// What retention deletes by age. Events: gaps.cpp; lines of the audit log: audit.cpp; by size: shrink.cpp.
#include "base/log.hpp"
#include "store/audit.hpp"
#include "store/enforcements.hpp"
#include "store/gaps.hpp"
#include "store/sinks.hpp"

namespace driftd::store {
namespace {

constexpr int kSlice = 1'000;
constexpr Nanos kHour = 3'600'000'000'000;
constexpr Nanos kJump = kHour;  ///< corrections by NTP stay below this
constexpr Nanos kDoubt = 24 * kHour;
constexpr Nanos kLongAway = 30 * 24 * kHour;

struct Candidate {
  std::int64_t seq = 0;
  Nanos recorded_ns = 0;
};

/// A slice of 1,000 rows in the order of their sequence numbers, and which of them are old.
struct Slice {
  std::vector<Candidate> old;
  std::int64_t last = 0;
  bool more = false;  ///< old rows may follow after it
};

/// Sequence numbers follow time, except for a clock that was wrong. Rows from the future are skipped, otherwise
/// everything after them would stay until their time. A slice with only young rows, and none from the future, is the
/// end: a usual round reads one such slice.
Result<Slice> next_slice(SqliteStore::State& state, Nanos before) {
  const Nanos now = state.clock.wall();
  Slice out;
  int rows = 0;
  bool passed = false;
  auto query = state.db->statement("SELECT seq, recorded_ns FROM event WHERE seq > ? ORDER BY seq LIMIT ?");
  query.bind(state.retention.next_seq, kSlice);
  while (true) {
    DRIFTD_TRY(const bool more, query.next());
    if (!more) break;
    ++rows;
    out.last = query.integer(0);
    if (query.integer(1) < before) out.old.push_back({out.last, query.integer(1)});
    passed = passed || query.integer(1) > now;
  }
  out.more = rows == kSlice && (passed || !out.old.empty());
  return out;
}

Result<bool> prune_events(SqliteStore::State& state, Nanos delivered_before, Nanos undelivered_before) {
  DRIFTD_TRY(const auto slice, next_slice(state, std::max(delivered_before, undelivered_before)));
  Gaps gaps{kRetention, "they were not delivered before retention ended"};
  for (const auto& event : slice.old) {
    DRIFTD_TRY(const auto outstanding, outstanding_of(*state.db, event.seq));
    const Nanos before = outstanding.empty() ? delivered_before : undelivered_before;
    if (event.recorded_ns < before) DRIFTD_CHECK(forget_event(*state.db, event.seq, outstanding, gaps));
  }
  DRIFTD_CHECK(write_gap_events(state, gaps));
  state.retention.next_seq = slice.more ? slice.last : 0;  // the next round begins at the start again
  return slice.more;
}

Result<bool> prune_table(Connection& db, std::string_view sql, Nanos before) {
  DRIFTD_CHECK(db.statement(sql).bind(before, kSlice).run());
  return db.changes() == kSlice;
}

Result<bool> prune_history(SqliteStore::State& state) {
  const Nanos now = state.clock.wall();
  const Nanos history = now - std::chrono::nanoseconds(state.settings.history).count();
  const Nanos audit = now - std::chrono::nanoseconds(state.settings.audit).count();
  const std::pair<std::string_view, Nanos> slices[] = {
      {"DELETE FROM drift WHERE id IN (SELECT id FROM drift WHERE open = 0 AND ended_ns < ? LIMIT ?)", history},
      {"DELETE FROM resource WHERE id IN (SELECT id FROM resource WHERE present = 0 AND has_open = 0 AND "
       "baseline IS NULL AND observed_ns < ? LIMIT ?)",
       history},
      {"DELETE FROM resource WHERE id IN (SELECT r.id FROM backend b JOIN resource r ON r.backend = b.id "
       "WHERE b.deleted_ns < ? AND r.has_open = 0 LIMIT ?)",
       history},
      {"DELETE FROM quarantine WHERE seq IN (SELECT seq FROM quarantine WHERE found_ns < ? LIMIT ?)", history}};
  bool more = false;
  for (const auto& [sql, before] : slices) {
    DRIFTD_TRY(const bool full, prune_table(*state.db, sql, before));
    more = more || full;
  }
  DRIFTD_TRY(const bool operations, prune_enforcements(*state.db, audit, kSlice));
  DRIFTD_TRY(const bool lines, prune_audit(*state.db, audit, now, kSlice));
  return more || operations || lines;
}

Nanos mono_of(const Clock& clock) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(clock.mono().time_since_epoch()).count();
}

/// Stores the end of the wait in terms of the doubted wall clock, which still runs at the right speed, so that a
/// restart does not end the wait.
Status keep_doubt(SqliteStore::State& state, Nanos until) {
  constexpr std::string_view sql =
      "INSERT OR REPLACE INTO meta (key, value, crc) VALUES ('clock_doubted_until', ?1, "
      "driftd_crc('clock_doubted_until', ?1))";
  return state.db->statement(sql).bind(until).run();
}

/// Returns true if, within the last day, the wall clock advanced by more than the time that passed. Trusting it at once
/// would delete young rows, undelivered events among them, and correcting the clock would not bring them back. If the
/// clock is right now, a day without deletions is the cost.
Result<bool> is_doubted(SqliteStore::State& state) {
  const Nanos mono = mono_of(state.clock);
  const Nanos ahead = state.clock.wall() - mono - state.retention.clock_offset;
  if (ahead > kJump) {
    if (state.retention.waits_until == 0) {
      log::room("store").warn(
          "the clock went {} h ahead of the time that passed: nothing is deleted for its age for 24 h, so that it can "
          "be set right; "
          "if it is right, nothing is to be done",
          ahead / kHour);
      state.retention.waits_until = mono + kDoubt;
      DRIFTD_CHECK(keep_doubt(state, state.clock.wall() + kDoubt));
    }
    if (mono < state.retention.waits_until) return true;
  }
  state.retention.clock_offset = state.clock.wall() - mono;
  state.retention.waits_until = 0;
  DRIFTD_CHECK(state.db->execute("DELETE FROM meta WHERE key = 'clock_doubted_until'"));
  return false;
}

}  // namespace

Status believe_clock(SqliteStore::State& state, Nanos last_commit) {
  const Nanos wall = state.clock.wall(), mono = mono_of(state.clock);
  DRIFTD_TRY(Nanos until, state.db->integer("SELECT value FROM meta WHERE key = 'clock_doubted_until'"));
  if (last_commit > 0 && wall - last_commit > kLongAway) {
    until = wall + kDoubt;
    DRIFTD_CHECK(keep_doubt(state, until));
  }
  const bool doubted = until > wall && until - wall <= kDoubt;  // a clock that went back since then is trusted
  state.retention.clock_offset = wall - mono - (doubted ? kJump + 1 : 0);
  state.retention.waits_until = doubted ? mono + (until - wall) : 0;
  return {};
}

Task<Result<bool>> SqliteStore::prune(Nanos delivered_before, Nanos undelivered_before) {
  const auto state = state_;
  const auto more = std::make_shared<bool>(false);
  Work work = [state, more, delivered_before, undelivered_before]() -> Status {
    DRIFTD_TRY(const bool doubted, is_doubted(*state));
    if (doubted) return {};
    DRIFTD_TRY(const bool events, prune_events(*state, delivered_before, undelivered_before));
    DRIFTD_TRY(const bool history, prune_history(*state));
    *more = events || history;
    return {};
  };
  DRIFTD_CO_CHECK(co_await in_group(state, std::move(work)));
  co_return *more;
}

}  // namespace driftd::store
