// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "delivery/agenda.hpp"
#include "delivery/live_delivery.hpp"
#include "delivery/progress_watch.hpp"
#include "delivery/replay_job.hpp"
#include "delivery/sink_endpoint.hpp"

namespace driftd::delivery {

/// Delivers the events routed to one sink: fetch → send → settle. It performs one duty after the other, as the agenda
/// decides, and sleeps only when the agenda says so. A fetch and a save run beside the loop, so that events go on being
/// sent while the store reads and writes. It never touches another runner. Core thread.
class SinkRunner : public std::enable_shared_from_this<SinkRunner> {
 public:
  /// Owns the sink. `name` and `type` are those of the configuration.
  SinkRunner(std::shared_ptr<SinkRunnerContext> context, std::string name, std::string type,
             std::unique_ptr<core::Sink> sink);

  /// Runs until stop(). Opens the cursor first, then starts the sink, retrying until it starts.
  Task<void> run();
  /// Wakes the runner to look for new events in the store and at the clock.
  void wake_and_fetch();
  /// Ends run(): sends what can be sent at once, waits up to `drain` for events in flight, saves, stops the sink. All
  /// this may take 5 s longer than `drain`; then whatever hangs is abandoned.
  void stop(Millis drain);
  Status use_secrets(std::vector<std::string> secrets) { return endpoint_.use_secrets(std::move(secrets)); }
  Task<void> former_secrets_unused();
  bool stopped() const { return ended_; }  ///< run() is about to return
  /// Returns true if the sink or its last save did not end in time: a thread may still be in it.
  bool abandoned() const { return ended_ && !wound_up_; }
  core::SinkView view() const;
  /// To be called every few seconds. Logs a lack of progress once. A runner that sleeps although it has work is a
  /// defect: it is logged, counted and woken.
  void watch();

  /// Sends stored events again, marked as replay, behind live traffic, at most `rate` a second (0: no limit). Returns
  /// their number once the order is stored; they are sent in the background, also after a restart.
  Task<Result<std::int64_t>> replay(core::Control::Replay request);
  /// Replays or drops dead letters; `verb` is `replay` or `drop`. Empty `seqs`: all dead letters of this sink. Returns
  /// how many.
  Task<Result<std::int64_t>> dead_letter(std::string verb, std::vector<std::int64_t> seqs);

 private:
  Situation situation() const;
  Task<void> perform(Duty duty);
  /// Starts a fetch or a save and returns; its end wakes the loop.
  void perform_beside(Duty duty, Situation before);
  Task<void> run_beside(Duty duty, Situation before);
  bool& under_way(Duty duty) { return duty == Duty::fetch ? fetching_ : saving_; }
  /// Counts duties that changed nothing.
  void note_effect(Duty duty, const Situation& before);
  Task<void> open();
  Task<void> save(bool all);
  void send_ready();
  Task<void> deliver(std::shared_ptr<const core::StoredEvent> event);
  void resume_replay();
  Task<void> run_resumed_replay();
  void send_replay();
  Task<void> deliver_replay(ReplayQueue::Item item);
  /// Saves for the last time and stops the sink. It may never return, and does nothing more once it was given up.
  Task<void> finish();
  /// Ends the runner if it has not ended by itself when its time is over.
  Task<void> give_up_when_late();
  Task<void> wait_for_wake();
  Task<void> sleep(Time until);
  void wake();
  /// Reports a defect: one duty was done 16 times in a row and changed nothing.
  void report_idle(Duty duty);
  void report_stall();
  /// Wakes the loop if the agenda says that it should not sleep any more, and counts that as a defect if nothing
  /// explains it.
  void wake_if_due();
  std::string why_stalled() const;  ///< for a log line: what the events wait for

  SinkRun run_;  ///< shared by the parts below
  std::string type_;
  ProgressWatch progress_;
  Cursor cursor_;
  SinkEndpoint endpoint_;
  LiveDelivery live_;
  ReplayJob replay_;
  asio::steady_timer wake_timer_, finish_timer_;
  std::optional<Time> asleep_until_;        ///< empty: it is not asleep
  Time drain_until_{};                      ///< set by stop()
  Duty doing_ = Duty::sleep;                ///< the duty that the loop is waiting for
  bool fetching_ = false, saving_ = false;  ///< under way beside the loop
  int idle_ = 0;                            ///< duties in a row that changed nothing
  std::uint64_t missed_wakeups_ = 0;        ///< defects so far; a metric
  Time finish_by_ = Time::max();            ///< set by stop(): when the runner is given up
  bool wound_up_ = false;                   ///< the last save is done and the sink is stopped
  bool ended_ = false;                      ///< finish() is over, or was given up
};

}  // namespace driftd::delivery
