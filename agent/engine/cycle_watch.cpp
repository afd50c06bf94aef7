// SPDX-License-Identifier: Apache-2.0
// A page of a watch. It may concern any resources in any order, and several states of one while the watch catches up.
#include <algorithm>
#include <map>
#include <set>

#include "engine/cycle.hpp"
#include "engine/ledger.hpp"
#include "engine/resource_budget.hpp"

namespace driftd::engine {

std::vector<ResourceReading> last_of_each(std::vector<ResourceReading> all) {
  std::set<core::ResourceId> seen_ids;
  std::vector<ResourceReading> out;
  for (auto one = all.rbegin(); one != all.rend(); ++one) {
    if (seen_ids.insert(one->id).second) out.push_back(std::move(*one));
  }
  std::reverse(out.begin(), out.end());
  return out;
}

Task<Status> Cycle::watch_page(core::RecordPage page, Moment before, Moment received) {
  in_watch_ = true;
  note_diagnostics(page.diagnostics);
  std::vector<ResourceReading> present;
  std::set<core::ResourceId> tombstones;
  // unknown tombstones need room, too: an older list may still contain their resource
  std::uint64_t room = remaining_resources(ledger_);
  CommitExtras extras;
  std::map<core::ResourceId, bool> is_gone;  // by the last record of the page
  for (const auto& record : page.records) {
    if (record.backend.empty()) is_gone[record.id] = record.tombstone;
  }
  for (auto& record : page.records) {
    if (!record.backend.empty()) {
      add_declaration(std::move(record), extras);
    } else if (is_gone.at(record.id) != record.tombstone) {
      continue;
    } else if (record.tombstone) {
      const bool known = ledger_.index().find(record.id) != nullptr;
      if ((!known && room == 0) || !ledger_.scope().wants(record.id)) continue;
      const bool added = tombstones.insert(record.id).second;
      if (added && !known) --room;
    } else {
      const Moment::Mono asked = Moment::received_at(record.observed_ns, before, received);
      core::ResourceId id = record.id;
      present.push_back({std::move(id), core::Present{std::move(record), {}}, asked});
    }
  }
  for (const auto& mark : page.marks) {
    if (!mark.cursor.empty()) extras.watch_cursor = mark.cursor;
  }
  Kind unused;
  DRIFTD_CO_CHECK(co_await confirm({tombstones.begin(), tombstones.end()}, &unused));
  DRIFTD_CO_CHECK(co_await judge_records(std::move(present), std::move(extras)));
  pass_on_reports();
  const auto status = co_await save_serial();
  co_return status;
}

}  // namespace driftd::engine
