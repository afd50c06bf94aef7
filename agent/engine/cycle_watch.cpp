// SPDX-License-Identifier: Apache-2.0
// A page of a watch: it may be about any resource, in any order, and one that catches up says several things of one.
#include <algorithm>
#include <map>
#include <set>

#include "engine/cycle.hpp"
#include "engine/room.hpp"

namespace driftd::engine {

std::vector<Sighted> last_of_each(std::vector<Sighted> all) {
  std::set<core::ResourceId> said;
  std::vector<Sighted> out;
  for (auto one = all.rbegin(); one != all.rend(); ++one) {
    if (said.insert(one->id).second) out.push_back(std::move(*one));
  }
  std::reverse(out.begin(), out.end());
  return out;
}

Task<Status> Cycle::watch_page(core::RecordPage page, Moment before, Moment received) {
  note_diagnostics(page.diagnostics);
  std::vector<Sighted> present;
  std::set<core::ResourceId> tombstones;
  std::uint64_t room = room_left(ledger_);  // who was never there takes some, too: an older list may still bring it
  Extras extras;
  std::map<core::ResourceId, bool> is_gone;  // by the last word of the page
  for (const auto& record : page.records) {
    if (record.backend.empty()) is_gone[record.id] = record.tombstone;
  }
  for (auto& record : page.records) {
    if (!record.backend.empty()) {
      take_declared(record, extras);
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
      present.push_back({std::move(id), core::Seen{std::move(record), {}}, asked});
    }
  }
  for (const auto& mark : page.marks) {
    if (!mark.cursor.empty()) extras.watch_cursor = mark.cursor;
  }
  Kind unused;
  DRIFTD_CO_CHECK(co_await confirm({tombstones.begin(), tombstones.end()}, &unused));
  const auto status = co_await judge_records(std::move(present), std::move(extras));
  if (status) DRIFTD_CO_CHECK(co_await remember_serial());
  co_return status;
}

}  // namespace driftd::engine
