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
  may_have_left(going);
}

bool Oracle::nobody_waits(const Entry& entry, bool dead_letters) const {
  const auto seq = entry.what.seq;
  return std::all_of(receivers_.begin(), receivers_.end(), [&](const auto* receiver) {
    if (entry.to.count(receiver->name()) == 0 || receiver->had(entry.what.id)) return true;
    if (receiver->name() == "hook" && dropped_dead_.count(seq) != 0) return true;
    if (dead_letters && receiver->given_up().count(seq) != 0) return true;
    const auto lost = may_lose_.find(receiver->name());
    return lost != may_lose_.end() && lost->second.count(seq) != 0;
  });
}

std::set<std::int64_t> Oracle::delivered_before(Nanos before) const {
  std::set<std::int64_t> out;
  for (const auto& [seq, entry] : ledger_) {
    if (entry.recorded_ns >= before) break;
    if (may_have_left_.count(seq) == 0 && nobody_waits(entry, false)) out.insert(out.end(), seq);
  }
  return out;
}

std::set<std::int64_t> Oracle::removable() const {
  std::set<std::int64_t> out;
  for (const auto& [seq, entry] : ledger_) {
    if (may_have_left_.count(seq) == 0 && nobody_waits(entry, true)) out.insert(out.end(), seq);
  }
  return out;
}

void Oracle::may_have_left(const std::set<std::int64_t>& seqs) {
  for (const auto seq : seqs) {
    const Entry& entry = ledger_.at(seq);
    may_have_left_.insert(seq);
    for (auto* receiver : receivers_) {
      if (entry.to.count(receiver->name()) == 0) continue;
      if (receiver->given_up().count(seq) != 0) may_lose_[receiver->name()].insert(seq);
      receiver->excuse(seq);
    }
  }
}

void Oracle::check_log(const std::set<std::int64_t>& seqs) {
  for (const auto& [seq, entry] : ledger_) {
    if (seqs.count(seq) != 0 || may_have_left_.count(seq) != 0) continue;
    return complain("event " + std::to_string(seq) + ", " + entry.what.id + ", left the store before it might");
  }
}

void Oracle::check_removable(const std::set<std::int64_t>& seqs) {
  std::set<std::int64_t> waiting;
  for (auto* receiver : receivers_) waiting.merge(receiver->outstanding());
  for (const auto seq : seqs) {
    const auto found = ledger_.find(seq);
    if (found == ledger_.end() || waiting.count(seq) != 0) continue;
    return complain("the store is larger than it may be, and keeps event " + std::to_string(seq) + ", " +
                    found->second.what.id + ", for which nobody waits");
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
  gap.recorded_ns = event.stamp.recorded_ns;
  std::int64_t dead = 0;
  if (std::sscanf(text, "sink %31s never gets %ld events (from %ld to %ld)", name, &gap.count, &gap.from, &gap.to) ==
      4) {
    gaps_[name].push_back(gap);
  } else if (std::sscanf(text, "sink %31s was removed with %ld events pending and %ld dead letters (events %ld to %ld)",
                         name, &gap.count, &dead, &gap.from, &gap.to) == 5) {
    gap.count += dead;
    removed_with(name, gap);
  } else if (std::sscanf(text, "sink %31s does not get again up to %ld events (from %ld to %ld)", name, &gap.count,
                         &gap.from, &gap.to) == 4) {
    not_again_[name].push_back(gap);
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

/// True if a gap says that the receiver never gets this event.
bool Oracle::told(const Receipts& receiver, std::int64_t seq) const {
  const auto gaps = gaps_.find(receiver.name());
  return gaps != gaps_.end() && std::any_of(gaps->second.begin(), gaps->second.end(),
                                            [seq](const auto& gap) { return gap.from <= seq && seq <= gap.to; });
}

/// What a receiver lost after it had acknowledged it was sent again, or a gap says that it was not. Also a gap of an
/// earlier loss: by it, nobody knows of these events whether the receiver has them.
void Oracle::check_not_again(const Receipts& receiver) {
  const auto& gaps = not_again_[receiver.name()];
  for (const auto& [seq, at] : receiver.lost()) {
    const Entry& entry = ledger_.at(seq);
    const bool known = std::any_of(gaps.begin(), gaps.end(),
                                   [seq = seq](const auto& gap) { return gap.from <= seq && seq <= gap.to; });
    if (known || receiver.has(entry.what.id) || !receiver.had(entry.what.id) || told(receiver, seq)) continue;
    return complain(receiver.name() + " lost event " + std::to_string(seq) + ", " + entry.what.id +
                    ", which is not in the store any more, and no gap says so");
  }
  for (const auto& gap : gaps) check_most(receiver, gap);
}

/// A gap names no fewer events than the receiver lost by then and does not have, and no more than may have left the
/// store, or lie in its range.
void Oracle::check_most(const Receipts& receiver, const Announced& gap) {
  std::int64_t least = 0, most = 0;
  for (auto at = receiver.lost().lower_bound(gap.from); at != receiver.lost().end() && at->first <= gap.to; ++at) {
    const auto& id = ledger_.at(at->first).what.id;
    const bool gone = at->second <= gap.recorded_ns && receiver.had(id) && !receiver.has(id);
    if (gone && !told(receiver, at->first)) ++least;
  }
  for (const auto seq : may_have_left_) {
    if (seq <= gap.to) most += static_cast<std::int64_t>(ledger_.at(seq).to.count(receiver.name()));
  }
  most = std::min(most, gap.to - gap.from + 1);
  if (gap.count >= std::max<std::int64_t>(least, 1) && gap.count <= most) return;
  complain("a gap says that " + receiver.name() + " does not get again up to " + std::to_string(gap.count) +
           " events from " + std::to_string(gap.from) + " to " + std::to_string(gap.to) + "; expected " +
           std::to_string(least) + " to " + std::to_string(most));
}

/// Every event that retention cost a receiver is in a gap of it, and no gap names others.
void Oracle::check_gaps(const Receipts& receiver) {
  const auto& may = may_lose_[receiver.name()];
  std::size_t never = 0;
  for (const auto seq : lost_[receiver.name()]) {
    const Entry& entry = ledger_.at(seq);
    if (receiver.has(entry.what.id) || receiver.had(entry.what.id)) continue;
    ++never;
    if (told(receiver, seq)) continue;
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
      if (gone && dropped_dead_.count(seq) == 0 && still_dead_[name].count(seq) == 0 && !told(*receiver, seq))
        complain("the dead letter of event " + std::to_string(seq) + " was deleted, and no gap says so");
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
