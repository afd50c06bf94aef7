// SPDX-License-Identifier: Apache-2.0
// Reduces a store that is larger than it may be: deletes history before its time, the oldest first.
#include <algorithm>
#include <utility>

#include "store/audit.hpp"
#include "store/gaps.hpp"
#include "store/sinks.hpp"

namespace driftd::store {
namespace {

constexpr int kShrinkSlice = 1'000;
constexpr int kShrinkStep = 16;  ///< deletions between two checks of the size

/// Returns the bytes of store.db in used pages without those of the audit log, which has a retention of its own and
/// must not push events out. Deleting frees pages for reuse; the file does not get smaller.
Result<std::int64_t> bytes_in_use(Connection& db) {
  DRIFTD_TRY(const auto pages, db.integer("PRAGMA page_count"));
  DRIFTD_TRY(const auto free, db.integer("PRAGMA freelist_count"));
  DRIFTD_TRY(const auto size, db.integer("PRAGMA page_size"));
  DRIFTD_TRY(const auto audit, audit_bytes(db));
  return std::max<std::int64_t>((pages - free) * size - audit, 0);
}

/// One slice, in a transaction. It ends as soon as the store is small enough.
class ShrinkSlice {
 public:
  ShrinkSlice(SqliteStore::State& state, std::int64_t max_bytes)
      : state_(state),
        at_(state.shrink),
        max_bytes_(max_bytes) {}

  /// Returns where the next slice begins once this one is committed.
  const SqliteStore::State::Shrink& at() const { return at_; }

  Result<Shrunk> run() {
    DRIFTD_TRY(const auto events, next_events());
    const bool at_end = events.size() < static_cast<std::size_t>(kShrinkSlice);
    DRIFTD_CHECK(look());
    DRIFTD_CHECK(forget_drifts(events.empty() ? state_.clock.wall() : events.front().recorded_ns));
    for (const auto& event : events) {
      if (is_small()) break;
      DRIFTD_CHECK(pass(event));
    }
    DRIFTD_CHECK(forget_dead());
    if (at_end) DRIFTD_CHECK(forget_drifts(state_.clock.wall()));
    DRIFTD_CHECK(look());
    DRIFTD_CHECK(write_gap_events(state_, gaps_));
    at_.forgot += out_.events + out_.drifts;
    out_.more = !is_small() && (!at_end || begin_pass());
    return out_;
  }

 private:
  struct OldEvent {
    std::int64_t seq = 0;
    Nanos recorded_ns = 0;
  };

  Result<std::vector<OldEvent>> next_events() {
    std::vector<OldEvent> out;
    auto query = state_.db->statement("SELECT seq, recorded_ns FROM event WHERE seq > ? ORDER BY seq LIMIT ?");
    query.bind(at_.looked_to, kShrinkSlice);
    while (true) {
      DRIFTD_TRY(const bool more, query.next());
      if (!more) return out;
      out.push_back({query.integer(0), query.integer(1)});
    }
  }

  Status look() {
    DRIFTD_TRY(out_.bytes, bytes_in_use(*state_.db));
    return {};
  }
  bool is_small() const { return out_.bytes <= max_bytes_; }

  /// Keeps an event that a sink waits for.
  Status pass(const OldEvent& event) {
    at_.looked_to = event.seq;
    DRIFTD_TRY(auto outstanding, outstanding_of(*state_.db, event.seq));
    const bool waits =
        std::any_of(outstanding.begin(), outstanding.end(), [](const Outstanding& one) { return !one.dead; });
    if (waits) return {};
    if (!outstanding.empty()) {
      dead_.emplace_back(event, std::move(outstanding));
      return {};
    }
    return forget(event, outstanding);
  }

  /// Deletes the dead letters of this slice, unless this pass spares them or something else could be deleted in this
  /// slice.
  Status forget_dead() {
    if (at_.spares_dead || out_.events > 0) return {};
    for (const auto& [event, outstanding] : dead_) {
      if (is_small()) return {};
      DRIFTD_CHECK(forget(event, outstanding));
    }
    return {};
  }

  Status forget(const OldEvent& event, const std::vector<Outstanding>& outstanding) {
    DRIFTD_CHECK(forget_event(*state_.db, event.seq, outstanding, gaps_));
    out_.until = std::max(out_.until, event.recorded_ns);
    if (++out_.events % kShrinkStep != 0) return {};
    return look();
  }

  /// Deletes drifts that ended before then: they are older than the remaining events.
  Status forget_drifts(Nanos until) {
    constexpr std::string_view sql =
        "DELETE FROM drift WHERE id IN (SELECT id FROM drift WHERE open = 0 AND ended_ns <= ? ORDER BY ended_ns LIMIT "
        "?)";
    while (!is_small() && out_.drifts < kShrinkSlice) {
      DRIFTD_CHECK(state_.db->statement(sql).bind(until, kShrinkStep).run());
      const auto gone = state_.db->changes();
      out_.drifts += gone;
      DRIFTD_CHECK(look());
      if (gone < kShrinkStep) return {};
    }
    return {};
  }

  /// Called at the end of a pass over all events while the store is still too large. A pass that kept dead letters is
  /// followed by one that does not; if that one found hardly anything, nothing is left to delete. Returns false then.
  bool begin_pass() {
    const bool spared = at_.spares_dead;
    const bool found = at_.forgot >= kShrinkSlice;
    at_ = {};
    at_.spares_dead = !spared;
    return spared || found;
  }

  SqliteStore::State& state_;
  SqliteStore::State::Shrink at_;
  std::int64_t max_bytes_;
  std::vector<std::pair<OldEvent, std::vector<Outstanding>>> dead_;  ///< dead letters of this slice
  Gaps gaps_{kStoreFull, "they were dead letters, and the store takes more than retention.max_bytes"};
  Shrunk out_;
};

}  // namespace

Task<Result<Shrunk>> SqliteStore::shrink(std::int64_t max_bytes) {
  const auto state = state_;
  const auto out = std::make_shared<Shrunk>();
  auto look = [](Connection& db) { return bytes_in_use(db); };  // no transaction: mostly there is nothing to do
  DRIFTD_CO_TRY(out->bytes, co_await on_store(state, std::move(look)));
  if (out->bytes <= max_bytes) co_return *out;
  const auto at = std::make_shared<State::Shrink>();
  Work work = [state, out, at, max_bytes]() -> Status {
    ShrinkSlice slice(*state, max_bytes);
    DRIFTD_TRY(*out, slice.run());
    *at = out->bytes <= max_bytes ? State::Shrink{} : slice.at();
    return {};
  };
  DRIFTD_CO_CHECK(co_await in_group(state, std::move(work)));
  state->shrink = *at;  // only after the commit: a slice that failed is repeated by the next call
  co_return *out;
}

}  // namespace driftd::store
