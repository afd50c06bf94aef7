// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/steady_timer.hpp>

#include "delivery/relay_settings.hpp"
#include "delivery/situation.hpp"
#include "delivery/window.hpp"

namespace driftd::delivery {

class ProgressWatch;

inline constexpr Millis kStoreRetry{1'000};  ///< wait after a failure of the store

/// One sink's cursor in the store, and the window of its events in memory: opens, fetches, saves and moves it back. A
/// failure of the store makes everything wait for kStoreRetry. Core thread.
class Cursor {
 public:
  using Notes = std::map<std::string, std::string>;  ///< what the sink and its runner keep over a restart, by name
  Cursor(SinkRun& run, ProgressWatch& progress);     ///< both must outlive it

  /// What the agenda decides on. Each call computes it from the present state.
  StoreSituation store_situation() const;
  WaitingSituation waiting_situation() const;
  SaveSituation save_situation() const;

  /// Reads the cursor and the exceptions that the last process left. opened() tells whether it succeeded.
  Task<void> open();
  /// Reads the next 512 events at most into the window. A page that the store cut by its size is not the last one.
  Task<void> fetch();
  /// Fetches the payload of due events that are in memory without it.
  Task<void> load_due();
  /// Moves the stored cursor back to what rewind_to() named. It must be opened again afterwards.
  Task<void> rewind();
  /// Replays or drops dead letters; see SinkRunner::dead_letter(). Returns when that is stored.
  Task<Result<std::int64_t>> dead_letter(std::string verb, std::vector<std::int64_t> seqs);

  /// One save under way: what is stored, the notes as they were when it began, and its number.
  struct Save {
    core::SinkSettlement settlement;
    Notes notes;
    std::uint64_t number = 0;
  };
  /// Returns what to save. Its notes are added by begin_save(), so that they may be written in between.
  core::SinkSettlement plan_save(bool all);
  Save begin_save(core::SinkSettlement settlement);
  /// Stores it. `flushed` is false if the receiver may not have all of it: nothing is stored then.
  Task<void> finish_save(Save save, bool flushed);
  /// Returns after the next save or failed save, or after end_waits().
  Task<void> wait_for_save();
  void end_waits() { saved_.cancel(); }

  Window& window() { return window_; }
  const Window& window() const { return window_; }
  Notes& notes() { return notes_; }        ///< saved with the cursor
  bool opened() const { return opened_; }  ///< open() succeeded, and no rewind() since
  bool rewinding() const { return rewind_to_.has_value(); }
  bool waits_for_store() const { return run_.now() < retry_at_; }  ///< true for kStoreRetry after a failure
  /// Returns true if events wait, or if the store may have newer ones.
  bool has_work() const { return opened_ && (window_.size() != 0 || !exhausted_); }
  /// Returns true if this note is in the store.
  bool stored_note(const std::string& name) const { return saved_notes_.contains(name); }
  void revert_note(const std::string& name);                    ///< to what is in the store
  std::uint64_t failed_saves() const { return failed_saves_; }  ///< since the process started
  std::uint64_t openings() const { return openings_; }          ///< the same; moving it back opens it again
  /// Returns true if the sink takes nothing new.
  bool at_exception_limit() const { return window_.exceptions() >= run_.context->settings.max_exceptions; }
  std::string exception_limit_text() const;  ///< for a log line and a view

  void look_for_new() {  ///< the store may have newer events
    exhausted_ = false;
    ++looks_;
  }
  std::uint64_t looks() const { return looks_; }          ///< calls of look_for_new()
  void rewind_to(std::int64_t seq) { rewind_to_ = seq; }  ///< events after `seq` are sent again
  void save_now() { save_now_ = true; }                   ///< the next save does not wait for its time
  /// An answer came: if it begins something to save, that waits for the answers of the next moment.
  void save_soon();
  /// Logs a failure of the store, notes it as the sink's last error, and pauses.
  void retry_later(const std::string& doing, const Error& error);
  /// Makes everything wait for kStoreRetry, as after a failure of the store.
  void pause();
  /// Forgets events that have left the store before the sink had them. The store has announced that.
  void lost(const std::vector<std::int64_t>& seqs);
  /// The next save stores the event together with the state that it reports, in one transaction, and is repeated until
  /// it succeeds.
  void publish(std::string what, std::string message, std::map<std::string, std::string> details);

 private:
  /// Returns what is left of the wait of an event that failed in an earlier process; never negative.
  Millis wait_of(const core::DeliveryState& state) const;
  /// Reads the events of the saved exceptions, 256 at a time, so that their keys are known. Opens the cursor at the
  /// end, unless the store failed or the runner stops.
  Task<void> restore_exceptions(std::vector<core::DeliveryState> exceptions);
  /// Returns once a save that began after this call is stored. Returns `unavailable` if that did not succeed, or if the
  /// cursor was opened again since it was opened for the `opening`th time.
  Task<Status> wait_until_stored(std::uint64_t opening);
  /// Makes dead letters regular events. Those that have left the store are reported as lost.
  Task<Status> requeue_dead(std::vector<std::int64_t> seqs);
  /// Drops the first `count` of the unsaved events: they are stored.
  void forget_published(std::size_t count);

  SinkRun& run_;
  ProgressWatch& progress_;
  Window window_;
  Notes notes_, saved_notes_;                     ///< as they are now, and as they are in the store
  std::vector<core::EventDraft> unsaved_events_;  ///< stored by the next save, with the state that they report
  asio::steady_timer saved_;                      ///< cancelled to wake wait_for_save()
  bool opened_ = false, exhausted_ = false, save_now_ = false;  ///< `exhausted_`: the store had nothing newer
  std::optional<std::int64_t> rewind_to_;                       ///< a seq; empty: no rewind is due
  Time next_save_{}, retry_at_{};  ///< when a save that can wait is due; when the store is asked again
  std::uint64_t failed_saves_ = 0, looks_ = 0;
  std::uint64_t saves_ = 0, stored_save_ = 0;  ///< number of the last save that began, and of the last one that is
                                               ///< stored
  std::uint64_t openings_ = 0;                 ///< each one begins with what is stored, and forgets what was not
};

}  // namespace driftd::delivery
