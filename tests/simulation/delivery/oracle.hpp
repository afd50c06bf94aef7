// SPDX-License-Identifier: Apache-2.0
// What must be true, judged from what the simulation itself did and saw. It reads no counter and no state of the code
// under test, except the totals of a quiet store, which it compares with its own.
#pragma once

#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/ports/reader.hpp"
#include "core/ports/store.hpp"
#include "simulation/delivery/receipts.hpp"

namespace driftd::sim {

/// A page as the provider gave it to the store: its number is in each of its events.
struct Page {
  int number = 0, events = 0;
};

/// The ledger: every event that the store said is committed, and every one that a receiver was sent although the answer
/// of its commit was lost with the process.
class Oracle {
 public:
  explicit Oracle(std::vector<Receipts*> receivers);

  /// `drafts`: the events of the page, each with its receivers.
  void submitted(Page page, const std::vector<core::EventDraft>& drafts);
  void committed(int page, const std::vector<core::StoredEvent>& events, const std::vector<core::EventDraft>& drafts);
  /// The store said that nothing of the page is stored.
  void refused(int page) { pages_[page].refused = true; }
  /// A receiver was sent this event: whoever sees it first, it must be one that was committed, or may have been.
  void sent(const std::string& receiver, const core::StoredEvent& event);

  /// The store's log has this event: its commit was not answered, or it is the store's own.
  void found(const core::StoredEvent& event);
  /// The store deletes now what is older than this and was not delivered: from here on such an event need not come, but
  /// then it must be announced.
  void retention_begins(Nanos undelivered_before);
  /// Returns what the store may delete now because it was delivered and is older than this: each of its receivers
  /// acknowledged it, or will never get it.
  std::set<std::int64_t> delivered_before(Nanos before) const;
  /// Returns what it may delete because it is too large: the same of any age, and dead letters that nobody waits for.
  std::set<std::int64_t> removable() const;
  /// The store may have deleted these: a receiver that loses one need not get it again, but then it must be announced.
  void may_have_left(const std::set<std::int64_t>& seqs);
  /// These are in the store's log: everything else was allowed to leave it.
  void check_log(const std::set<std::int64_t>& seqs);
  /// The store says that it is too large and that nothing more may be deleted: each of these may wait for a receiver.
  void check_removable(const std::set<std::int64_t>& seqs);
  /// A person asks to replay the events of a receiver from this one on. Returns what must come once more.
  std::set<std::int64_t> settled_from(const Receipts& receiver, std::int64_t seq) const;
  /// The dead letters that a person had replayed or dropped: each may be a dead letter still, if its process was
  /// killed.
  void handled(const std::string& verb, const std::set<std::int64_t>& dead);
  /// Returns what the receiver gave up and nobody dropped.
  std::set<std::int64_t> dead_letters_of(const Receipts& receiver) const;
  /// A command was answered that drops this dead letter.
  void dropped_for_good(std::int64_t seq) { dropped_for_good_.insert(seq); }
  /// Returns the number of events that some receiver does not have.
  std::size_t undelivered() const;
  std::int64_t newest() const { return ledger_.empty() ? 0 : ledger_.rbegin()->first; }

  /// Complains about each receiver that waits although it may be sent something. `since`: the agent and its store work
  /// without faults since then.
  void check_progress(Time since);
  /// True if each receiver has all that is known to be committed, or refused it for good, and every replay is over.
  bool all_arrived() const;
  /// Checks what must be true at the end: nothing is missing, no page in half, no hole in the numbers, and what was
  /// refused for good was reported to another receiver.
  void check_end();
  void check_totals(const std::vector<core::SinkTotals>& totals);
  void check_dead_letters(const std::vector<core::DeadLetter>& listed);

  void complain(const std::string& what);
  /// Adds a line to the trace. The same seed gives the same lines.
  void note(const std::string& line);
  const std::vector<std::string>& complaints() const { return complaints_; }
  const std::vector<std::string>& last_lines() const { return last_; }
  std::uint64_t trace() const { return trace_; }
  std::size_t events() const { return ledger_.size(); }

 private:
  struct Entry {
    Entered what;
    std::uint64_t sequence = 0, incarnation = 0;
    Nanos recorded_ns = 0;
    std::string backend;
    std::set<std::string> to;
    std::string reports;  ///< id of the event whose dead letter it reports
  };
  /// A `gap` event: what a receiver will never get.
  struct Announced {
    std::int64_t from = 0, to = 0, count = 0;
    Nanos recorded_ns = 0;
  };
  struct KnownPage {
    Page page;
    bool committed = false, refused = false;
    std::set<std::int64_t> seen;
    std::map<int, std::set<std::string>> to;  ///< receivers by number of the event in the page
  };

  void enter(const core::StoredEvent& event, std::set<std::string> to);
  void check_numbers(const core::StoredEvent& event);
  std::set<std::string> receivers_of(const core::StoredEvent& event);
  void check_dead(const Receipts& receiver);
  void read_gap(const core::StoredEvent& event);
  void may_never_come(const Receipts& receiver, const Entry& entry);
  void removed_with(const std::string& name, const Announced& gap);
  void check_gaps(const Receipts& receiver);
  void check_not_again(const Receipts& receiver);
  void check_most(const Receipts& receiver, const Announced& gap);
  bool told(const Receipts& receiver, std::int64_t seq) const;
  bool nobody_waits(const Entry& entry, bool dead_letters) const;
  std::int64_t announced(const std::string& receiver) const;

  std::vector<Receipts*> receivers_;
  std::map<std::int64_t, Entry> ledger_;  ///< by seq
  std::unordered_map<std::string, std::int64_t> ids_;
  std::map<int, KnownPage> pages_;
  std::map<std::string, std::vector<Announced>> gaps_;             ///< by receiver
  std::map<std::string, std::vector<Announced>> not_again_;        ///< the same: what it had and lost
  std::set<std::int64_t> may_have_left_;                           ///< the store
  std::map<std::string, std::set<std::int64_t>> lost_, may_lose_;  ///< the same: what retention must, and may, have
                                                                   ///< cost
  std::set<std::int64_t> handled_dead_, dropped_dead_, dropped_for_good_;  ///< dead letters of commands
  std::map<std::string, std::set<std::int64_t>> still_dead_;               ///< by receiver, as listed at the end
  std::set<std::string> reported_;  ///< ids of events that a `dead_letter` event names
  std::vector<std::string> complaints_, last_;
  std::uint64_t trace_ = 14'695'981'039'346'656'037U;
};

/// Returns the mark of one event, which is in its payload: `page-17-event-3;`.
std::string token_of(int page, int event);

}  // namespace driftd::sim
