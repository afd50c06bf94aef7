// SPDX-License-Identifier: Apache-2.0
#include "simulation/delivery/oracle.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace driftd::sim {
namespace {

constexpr std::size_t kShownLines = 40;

/// Returns the number after `before` in the payload, -1 if it is not there.
int number_in(const std::string& payload, const std::string& before) {
  const auto at = payload.find(before);
  return at == std::string::npos ? -1 : std::atoi(payload.c_str() + at + before.size());
}

}  // namespace

std::string token_of(int page, int event) {
  return "page-" + std::to_string(page) + "-event-" + std::to_string(event) + ";";
}

Oracle::Oracle(std::vector<Receipts*> receivers) : receivers_(std::move(receivers)) {
  for (auto* receiver : receivers_) receiver->complain = [this](const std::string& what) { complain(what); };
}

void Oracle::complain(const std::string& what) {
  note("WRONG: " + what);
  if (complaints_.size() < 20) complaints_.push_back(what);
}

void Oracle::note(const std::string& line) {
  const std::string dated = std::to_string(SimulatedTime::get().now().time_since_epoch().count()) + " " + line;
  for (const char byte : dated) trace_ = (trace_ ^ static_cast<unsigned char>(byte)) * 1'099'511'628'211U;
  static const bool shown = std::getenv("DRIFTD_SIMULATION_LOG") != nullptr;
  if (shown) std::printf("%s\n", dated.c_str());
  last_.push_back(dated);
  if (last_.size() > 2 * kShownLines) last_.erase(last_.begin(), last_.begin() + kShownLines);
}

void Oracle::submitted(Page page, const std::vector<core::EventDraft>& drafts) {
  KnownPage& known = pages_[page.number];
  known.page = page;
  for (int i = 0; i < page.events; ++i) {
    const auto& sinks = drafts[static_cast<std::size_t>(i)].sinks;
    known.to[i] = {sinks.begin(), sinks.end()};
  }
}

void Oracle::committed(int number, const std::vector<core::StoredEvent>& events,
                       const std::vector<core::EventDraft>& drafts) {
  KnownPage& page = pages_[number];
  page.committed = true;
  for (std::size_t i = 0; i < events.size(); ++i) {
    page.seen.insert(events[i].stamp.seq);
    enter(events[i], {drafts[i].sinks.begin(), drafts[i].sinks.end()});
  }
  note("page " + std::to_string(number) + " of " + std::to_string(events.size()) + " events is committed" +
       (events.empty() ? "" : " up to " + events.back().stamp.id));
}

/// An event's number of its backend rises with the outbox.
void Oracle::check_numbers(const core::StoredEvent& event) {
  const auto pair = std::pair(event.stamp.incarnation, event.stamp.sequence);
  const auto at = ledger_.find(event.stamp.seq);
  const auto& backend = at->second.backend;
  for (auto before = at; before != ledger_.begin();) {
    --before;
    if (before->second.backend != backend) continue;
    if (std::pair(before->second.incarnation, before->second.sequence) >= pair)
      complain("driftseq of event " + event.stamp.id + " is not above that of " + before->second.what.id);
    break;
  }
  for (auto after = std::next(at); after != ledger_.end(); ++after) {
    if (after->second.backend != backend) continue;
    if (std::pair(after->second.incarnation, after->second.sequence) <= pair)
      complain("driftseq of event " + event.stamp.id + " is not below that of " + after->second.what.id);
    break;
  }
}

void Oracle::enter(const core::StoredEvent& event, std::set<std::string> to) {
  const Entered what{event.stamp.seq, event.stamp.id, event.key, content_of(event)};
  const auto found = ledger_.find(event.stamp.seq);
  if (found != ledger_.end()) {
    if (found->second.what.id != what.id || found->second.what.content != what.content)
      complain("event " + std::to_string(what.seq) + " was " + found->second.what.id + " and is now " + what.id);
    return;
  }
  const auto id = ids_.emplace(what.id, what.seq);
  if (!id.second) complain("id " + what.id + " was given twice");
  Entry entry{what,
              event.stamp.sequence,
              event.stamp.incarnation,
              event.stamp.recorded_ns,
              event.agent_event ? "agent" : event.backend,
              to,
              ""};
  if (!ledger_.empty() && ledger_.begin()->second.incarnation != entry.incarnation)
    complain("event " + what.id + " is of another incarnation, though no commit was lost");
  if (event.agent_event && event.what == "dead_letter") {
    const auto at = event.payload.find("could not deliver event ");
    if (at != std::string::npos) entry.reports = event.payload.substr(at + 24, event.payload.find(':', at) - at - 24);
    reported_.insert(entry.reports);
  }
  if (event.agent_event && event.what == "gap") read_gap(event);
  ledger_.emplace(what.seq, std::move(entry));
  check_numbers(event);
  for (auto* receiver : receivers_) {
    if (to.count(receiver->name()) != 0) receiver->expect(what);
  }
}

/// Returns the receivers of an event whose commit was not answered, from its page; those of an agent event are the
/// bus and the log, but the one that it is about, unless it is about events that the store deleted.
std::set<std::string> Oracle::receivers_of(const core::StoredEvent& event) {
  if (event.agent_event) {
    std::set<std::string> out;
    const bool removed = event.payload.find(" was removed with ") != std::string::npos;
    const bool by_store = event.what == "gap" && !removed;  // of what it deleted
    for (const auto* receiver : receivers_) {
      const bool about = !by_store && event.payload.find("sink " + receiver->name() + " ") != std::string::npos;
      const bool gets_them = receiver->name() == "bus" || receiver->name() == "log";  // as Settings::route says
      if (gets_them && !about) out.insert(receiver->name());
    }
    return out;
  }
  const int number = number_in(event.payload, "page-"), which = number_in(event.payload, "-event-");
  const auto page = pages_.find(number);
  if (page == pages_.end()) {
    complain("event " + event.stamp.id + " was never given to the store");
    return {};
  }
  if (page->second.refused) complain("page " + std::to_string(number) + " was refused by the store, and is in it");
  page->second.seen.insert(event.stamp.seq);
  return page->second.to[which];
}

void Oracle::sent(const std::string& receiver, const core::StoredEvent& event) {
  if (ledger_.count(event.stamp.seq) == 0) {
    enter(event, receivers_of(event));
  } else {
    enter(event, {});
  }
  const Entry& entry = ledger_.at(event.stamp.seq);
  if (entry.to.count(receiver) == 0)
    complain(receiver + " was sent event " + event.stamp.id + ", which is not routed to it");
}

void Oracle::check_progress(Time since) {
  for (auto* receiver : receivers_) receiver->check_progress(since);
}

bool Oracle::all_arrived() const {
  return std::all_of(receivers_.begin(), receivers_.end(), [](const auto* one) {
    return one->missing().empty() && one->unanswered().empty() && one->all_replayed();
  });
}

void Oracle::check_dead(const Receipts& receiver) {
  for (const auto seq : receiver.given_up()) {
    const Entry& entry = ledger_.at(seq);
    if (entry.backend != "agent" && reported_.count(entry.what.id) == 0)
      complain("the dead letter " + entry.what.id + " of " + receiver.name() + " was reported to nobody");
  }
}

void Oracle::check_end() {
  for (const auto* receiver : receivers_) {
    for (const auto& [seq, event] : receiver->missing()) {
      complain(receiver->name() + " never got event " + std::to_string(seq) + ", " + event.id + ", and " +
               std::to_string(receiver->missing().size() - 1) + " others");
      break;
    }
    if (const std::string id = receiver->unanswered(); !id.empty())
      complain(receiver->name() + " has events for which its sink has no answer yet, such as " + id);
    if (!receiver->all_replayed())
      complain(receiver->name() + " was not sent again event " + std::to_string(*receiver->to_replay().begin()) +
               " and " + std::to_string(receiver->to_replay().size() - 1) + " others of an answered replay");
    check_dead(*receiver);
    check_gaps(*receiver);
    check_not_again(*receiver);
  }
  for (const auto& [number, page] : pages_) {
    const auto seen = static_cast<int>(page.seen.size());
    if (seen != 0 && seen != page.page.events)
      complain("page " + std::to_string(number) + " has " + std::to_string(page.page.events) + " events, of which " +
               std::to_string(seen) + " were stored");
  }
  std::map<std::string, std::uint64_t> last;
  for (const auto& [seq, entry] : ledger_) {
    if (++last[entry.backend] != entry.sequence)
      complain("driftseq of " + entry.what.id + " is " + std::to_string(entry.sequence) + ", expected " +
               std::to_string(last[entry.backend]));
    last[entry.backend] = entry.sequence;
  }
}

void Oracle::check_totals(const std::vector<core::SinkTotals>& totals) {
  for (const auto* receiver : receivers_) {
    const auto found =
        std::find_if(totals.begin(), totals.end(), [&](const auto& one) { return one.sink == receiver->name(); });
    if (found == totals.end()) continue;
    std::int64_t emitted = 0;
    for (const auto& [seq, entry] : ledger_) emitted += static_cast<std::int64_t>(entry.to.count(receiver->name()));
    const auto dead = static_cast<std::int64_t>(still_dead_[receiver->name()].size());
    const auto least = announced(receiver->name());
    const auto most = least + static_cast<std::int64_t>(receiver->name() == "hook" ? dropped_dead_.size() : 0);
    const bool exact = found->emitted == emitted && found->pending == 0 && found->dead == dead &&
                       found->dropped >= least && found->dropped <= most &&
                       found->acked == emitted - dead - found->dropped;
    if (exact) continue;
    complain("the totals of " + receiver->name() + " are emitted " + std::to_string(found->emitted) + ", acked " +
             std::to_string(found->acked) + ", pending " + std::to_string(found->pending) + ", dead " +
             std::to_string(found->dead) + ", dropped " + std::to_string(found->dropped) + "; expected emitted " +
             std::to_string(emitted) + ", dead " + std::to_string(dead) + ", dropped " + std::to_string(least) +
             " to " + std::to_string(most));
  }
}

}  // namespace driftd::sim
