// SPDX-License-Identifier: Apache-2.0
// What the oracle knows of events that never arrive: retention, dead letters, and what persons did with them.
#include <algorithm>
#include <cstdio>

#include "simulation/delivery/oracle.hpp"

namespace driftd::sim {

void Oracle::found(const core::StoredEvent& event) {
  if (ledger_.count(event.stamp.seq) == 0) note("the log has " + event.stamp.id);
  enter(event, ledger_.count(event.stamp.seq) == 0 ? receivers_of(event) : std::set<std::string>{});
}

/// An old event that any receiver does not have leaves the store for all of them, so that none of them can get it
/// again.
void Oracle::retention_begins(Nanos undelivered_before) {
  std::set<std::int64_t> going;
  for (auto* receiver : receivers_) {
    for (const auto seq : receiver->outstanding()) {
      const Entry& entry = ledger_.at(seq);
      if (entry.recorded_ns >= undelivered_before || entry.to.count(receiver->name()) == 0) continue;
      may_never_come(*receiver, entry);
      going.insert(seq);
    }
  }
  for (const auto seq : going) {
    for (auto* receiver : receivers_) {
      if (ledger_.at(seq).to.count(receiver->name()) != 0) receiver->excuse(seq);
    }
  }
}

/// What it had is lost by itself, and what a person dropped is not lost.
void Oracle::may_never_come(const Receipts& receiver, const Entry& entry) {
  const auto seq = entry.what.seq;
  may_lose_[receiver.name()].insert(seq);
  const bool dropped = receiver.name() == "hook" && dropped_dead_.count(seq) != 0;
  if (!dropped && !receiver.has(entry.what.id) && !receiver.had(entry.what.id)) lost_[receiver.name()].insert(seq);
}

/// Two sentences say which receiver never gets how many events, from where to where.
void Oracle::read_gap(const core::StoredEvent& event) {
  const auto at = event.payload.find("sink ");
  if (at == std::string::npos) return complain("a gap does not name its sink: " + event.payload);
  const char* const text = event.payload.c_str() + at;
  char name[32] = {};
  Announced gap;
  std::int64_t dead = 0;
  if (std::sscanf(text, "sink %31s never gets %ld events (from %ld to %ld)", name, &gap.count, &gap.from, &gap.to) ==
      4) {
    gaps_[name].push_back(gap);
  } else if (std::sscanf(text, "sink %31s was removed with %ld events pending and %ld dead letters (events %ld to %ld)",
                         name, &gap.count, &dead, &gap.from, &gap.to) == 5) {
    gap.count += dead;
    removed_with(name, gap);
  } else {
    return complain("the gap " + event.stamp.id + " does not say what is lost: " + event.payload);
  }
  note("gap of " + std::string(name) + " from " + std::to_string(gap.from) + " to " + std::to_string(gap.to));
}

/// A sink was removed with what waited for it: exactly that.
void Oracle::removed_with(const std::string& name, const Announced& gap) {
  gaps_[name].push_back(gap);
  for (auto* receiver : receivers_) {
    if (receiver->name() != name) continue;
    for (const auto seq : receiver->outstanding()) {
      const Entry& entry = ledger_.at(seq);
      if (seq > gap.to || entry.to.count(name) == 0) continue;
      may_never_come(*receiver, entry);
      receiver->excuse(seq);
    }
  }
}

std::int64_t Oracle::announced(const std::string& receiver) const {
  std::int64_t count = 0;
  const auto found = gaps_.find(receiver);
  if (found == gaps_.end()) return 0;
  for (const auto& gap : found->second) count += gap.count;
  return count;
}

/// Every event that retention cost a receiver is in a gap of it, and no gap names others.
void Oracle::check_gaps(const Receipts& receiver) {
  const auto& may = may_lose_[receiver.name()];
  std::size_t never = 0;
  for (const auto seq : lost_[receiver.name()]) {
    const Entry& entry = ledger_.at(seq);
    if (receiver.has(entry.what.id) || receiver.had(entry.what.id)) continue;
    ++never;
    const auto& gaps = gaps_[receiver.name()];
    const bool told =
        std::any_of(gaps.begin(), gaps.end(), [&](const auto& gap) { return gap.from <= seq && seq <= gap.to; });
    if (told) continue;
    return complain(receiver.name() + " never got event " + std::to_string(seq) + ", " + entry.what.id +
                    ", which retention deleted, and no gap says so");
  }
  for (const auto& gap : gaps_[receiver.name()]) {
    const auto inside = std::distance(may.lower_bound(gap.from), may.upper_bound(gap.to));
    if (may.count(gap.from) != 0 && may.count(gap.to) != 0 && gap.count >= 1 && gap.count <= inside) continue;
    return complain("a gap of " + receiver.name() + " from " + std::to_string(gap.from) + " to " +
                    std::to_string(gap.to) + " names " + std::to_string(gap.count) + " events; at most " +
                    std::to_string(inside) + " were too old and not delivered");
  }
  const auto count = static_cast<std::size_t>(announced(receiver.name()));
  if (count < never || count > may.size())
    complain("the gaps of " + receiver.name() + " name " + std::to_string(count) + " events; it never got " +
             std::to_string(never) + ", and could lose " + std::to_string(may.size()));
}

std::set<std::int64_t> Oracle::settled_from(const Receipts& receiver, std::int64_t seq) const {
  std::set<std::int64_t> out;
  for (auto at = ledger_.lower_bound(seq); at != ledger_.end(); ++at) {
    const auto& what = at->second.what;
    if (at->second.to.count(receiver.name()) != 0 && receiver.has(what.id) && receiver.is_settled(what.id))
      out.insert(at->first);
  }
  return out;
}

void Oracle::handled(const std::string& verb, const std::set<std::int64_t>& dead) {
  handled_dead_.insert(dead.begin(), dead.end());
  if (verb == "drop") dropped_dead_.insert(dead.begin(), dead.end());
}

std::set<std::int64_t> Oracle::dead_letters_of(const Receipts& receiver) const {
  std::set<std::int64_t> out = receiver.given_up();
  std::erase_if(out, [this](std::int64_t seq) { return dropped_for_good_.count(seq) != 0; });
  return out;
}

std::size_t Oracle::undelivered() const {
  std::set<std::int64_t> out;
  for (const auto* receiver : receivers_) {
    for (const auto& [seq, event] : receiver->missing()) {
      if (!receiver->had(event.id)) out.insert(seq);  // what it lost is unknown to the store until its sink notices
    }
  }
  return out.size();
}

/// A dead letter is listed until it is delivered after all, dropped by a person or deleted by retention.
void Oracle::check_dead_letters(const std::vector<core::DeadLetter>& listed) {
  for (const auto& one : listed) still_dead_[one.sink].insert(one.event.stamp.seq);
  for (const auto* receiver : receivers_) {
    const auto& name = receiver->name();
    for (const auto seq : receiver->given_up()) {
      const bool gone = dropped_dead_.count(seq) != 0 || may_lose_[name].count(seq) != 0;
      if (!gone && still_dead_[name].count(seq) == 0)
        complain("event " + std::to_string(seq) + " was given up by " + name + " and is not listed as a dead letter");
    }
    for (const auto seq : still_dead_[name]) {
      if (name == "hook" && dropped_for_good_.count(seq) != 0)
        complain("the dead letter of event " + std::to_string(seq) +
                 " is listed, although the command answered that it was dropped");
      if (receiver->given_up().count(seq) == 0 && handled_dead_.count(seq) == 0)
        complain("event " + std::to_string(seq) + " of " + name + " is listed as a dead letter and was not refused");
    }
  }
}

}  // namespace driftd::sim
