// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ports/control.hpp"
#include "delivery/relay_settings.hpp"
#include "delivery/replay_queue.hpp"
#include "delivery/situation.hpp"

namespace driftd::delivery {

class Cursor;
class SinkEndpoint;

/// A replay by command, from its order to its end: finds the events, stores the order, fetches and sends them, and
/// continues after a restart. One at a time. Core thread.
class ReplayJob {
 public:
  ReplayJob(SinkRun& run, Cursor& cursor, SinkEndpoint& endpoint) : run_(run), cursor_(cursor), endpoint_(endpoint) {}

  ReplaySituation situation() const;
  std::size_t in_flight() const { return replay_.in_flight(); }
  bool planning() const { return planning_; }  ///< begin() or resume() is under way
  bool unsaved() const { return unsaved_; }    ///< a save would change what is stored of it
  /// Takes the order from the cursor's notes, and forgets what was sent since they were stored. Call it after the
  /// cursor was opened.
  void restore_notes();
  void write_notes();
  /// The cursor is about to be moved back: what was sent since its notes were stored may not be flushed.
  void revert_notes();

  /// Returns the number of events once the order is stored.
  /// Returns `unavailable` if the cursor is not open or the order cannot be stored, `conflict` if a replay is under
  /// way, and `not_found` if the sink never had the event of `from_id`.
  Task<Result<std::int64_t>> begin(core::Control::Replay request);
  /// Must be called before resume() is spawned.
  void mark_planning() { planning_ = true; }
  /// Continues a replay that the last process did not finish.
  Task<void> resume();
  /// Reads the next events from the store. After a failure they are asked for again when the cursor's pause is over.
  Task<void> fetch();
  /// Returns the next event to send, which is in flight from now on. Empty if none is due.
  std::optional<ReplayQueue::Item> take();
  /// Sends an event of take().
  Task<void> deliver(ReplayQueue::Item item);

 private:
  /// Returns the seqs that a replay will send.
  Task<Result<std::vector<std::int64_t>>> plan(ReplayQueue::Order order, std::string from_id);
  /// Returns once the order is stored, so that an answered replay survives a kill.
  Task<Result<std::int64_t>> store_order(ReplayQueue::Order order, std::string from_id);
  /// Counts the event as done, or queues it again. It never becomes a dead letter; after 5 attempts of a sink that does
  /// not retry for ever it is counted as refused.
  void settle(ReplayQueue::Item item, const core::Attempt& attempt);
  /// Logs the summary and forgets the order once nothing is left of it.
  void end_if_finished();

  SinkRun& run_;
  Cursor& cursor_;
  SinkEndpoint& endpoint_;
  ReplayQueue replay_;  ///< what is left of it; not active if there is none
  bool planning_ = false, unsaved_ = false;
};

}  // namespace driftd::delivery
