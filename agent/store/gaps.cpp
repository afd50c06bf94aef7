// SPDX-License-Identifier: Apache-2.0
#include "store/gaps.hpp"

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

}  // namespace

Status forget_event(Connection& db, std::int64_t seq, const std::vector<Outstanding>& outstanding, Gaps& gaps) {
  for (const auto& sink : outstanding) {
    Gap& gap = gaps.of[sink.name];
    if (gap.count == 0) gap.from = seq;
    gap.to = seq;
    ++gap.count;
  }
  DRIFTD_CHECK(drop_routes(db, seq, outstanding, gaps.reason));
  return db.statement("DELETE FROM event WHERE seq = ?").bind(seq).run();
}

Status write_gap_events(SqliteStore::State& state, const Gaps& gaps) {
  for (const auto& [sink, gap] : gaps.of) DRIFTD_CHECK(write_gap_event(state, sink, gap, gaps));
  return {};
}

}  // namespace driftd::store
