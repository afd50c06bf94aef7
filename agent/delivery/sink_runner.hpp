// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <set>

#include "core/ports/control.hpp"
#include "core/ports/metrics.hpp"
#include "core/ports/sink.hpp"
#include "delivery/agenda.hpp"
#include "delivery/endpoint.hpp"
#include "delivery/outage.hpp"
#include "delivery/replay.hpp"
#include "delivery/window.hpp"

namespace driftd::delivery {

inline constexpr std::size_t kMaxExceptions = 250'000;  ///< for each sink, about 180 bytes each

struct RelaySettings {
  std::string agent, cluster = "default";
  /// Returns the sinks of an agent event (dead letter, gap, parked). The sink that it is about is removed.
  std::function<std::vector<std::string>(const core::AgentEvent&)> routes;
  std::vector<std::string> drop_pending;  ///< removed sinks whose pending events may be dropped
  Millis drain{10'000};
  Millis check_every{60'000};
  Millis disable_after = std::chrono::hours(120);  ///< a webhook that only failed for this long is disabled
  Millis stalled_after{30'000};  ///< an error is logged if events wait and none was settled for this long
  /// Maximum of a sink's events in memory that failed or wait behind a failed one. At it the sink takes nothing new.
  std::size_t max_exceptions = kMaxExceptions;
  core::Metrics* metrics = nullptr;  ///< may be null; outlives the relay
  unsigned seed = 0;                 ///< seed of the jitter; 0: random
};

/// What a runner shares with its relay. It must outlive the runner.
struct SinkRunnerContext {
  asio::any_io_executor core;
  core::Outbox& outbox;
  const Clock& clock;
  RelaySettings settings;
  std::function<void()> wake_all;  ///< called after an agent event was stored
};

/// Delivers the events routed to one sink: fetch → send → settle. It performs one duty after the other, as the agenda
/// decides, and sleeps only when the agenda says so. It never touches another runner. Core thread.
class SinkRunner : public std::enable_shared_from_this<SinkRunner> {
 public:
  SinkRunner(std::shared_ptr<SinkRunnerContext> context, std::string name, std::string type,
             std::unique_ptr<core::Sink> sink);

  /// Runs until stop(). Opens the cursor first, then starts the sink, retrying until it starts.
  Task<void> run();
  /// Wakes the runner to look for new events in the store and at the clock.
  void wake_and_fetch();
  /// Ends run(): sends what can be sent at once, waits up to `drain` for events in flight, saves, stops the sink.
  void stop();
  bool stopped() const { return ended_; }
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
  EndpointState endpoint_state() const;
  Situation situation() const;
  Task<void> perform(Duty duty);
  Task<void> sleep(Time until);
  void idle(Duty duty);
  Task<void> open_cursor();
  Millis wait_of(const core::DeliveryState& state) const;
  Task<void> restore_exceptions(std::vector<core::DeliveryState> exceptions);
  Task<void> fetch();
  Task<void> load_due();
  Task<void> check();
  Task<void> rewind();
  Task<void> start_sink();
  Task<void> save(bool all);
  Task<bool> flush();
  Task<void> finish();
  void send_ready();
  void send_replay();
  /// Returns the seqs that a replay will send.
  Task<Result<std::vector<std::int64_t>>> plan(Replay::Order order, std::string from_id);
  Task<Result<std::int64_t>> begin_replay(Replay::Order order, std::string from_id);
  Task<void> resume_replay();
  Task<void> fetch_replays();
  void end_replay();
  Task<void> deliver(core::StoredEvent event);
  Task<void> deliver_replay(Replay::Item item);
  void settle_attempt(const core::StoredEvent& event, const core::Attempt& attempt);
  void settle_replay(Replay::Item item, const core::Attempt& attempt);
  void failed(const core::StoredEvent& event, const core::Attempt& attempt);
  void refused(const core::StoredEvent& event, const core::Attempt& attempt);
  void endpoint_failed(const core::Attempt& attempt);
  void endpoint_alive(const std::string& key);
  void endpoint_changed();  ///< the sink reports that it is back or must be checked
  void circuit_opened(Circuit::State before);
  void count_outage_or_disable();
  void count(const core::StoredEvent& event, const core::Attempt& attempt);
  void make_dead_letter(const core::StoredEvent& event, int attempts, const std::string& error);
  void disable(const std::string& why);
  void lost(const std::vector<std::int64_t>& seqs);
  void retry_store_later(const std::string& doing, const Error& error);
  void publish_agent_event(std::string what, std::string message, std::map<std::string, std::string> details);
  void progress();
  void wake();
  bool has_work() const { return opened_ && (window_.size() != 0 || !exhausted_); }
  double stalled_seconds() const;
  std::string why_stalled() const;
  bool at_exception_limit() const { return window_.exceptions() >= context_->settings.max_exceptions; }
  std::string exception_limit_text() const;
  void report_exception_limit();
  Time now() const { return context_->clock.mono(); }

  std::shared_ptr<SinkRunnerContext> context_;
  std::string name_, type_;
  std::unique_ptr<core::Sink> sink_;
  core::RetryPolicy policy_;
  RetrySchedule schedule_;
  Endpoint endpoint_;
  Window window_;
  Replay replay_;
  std::map<std::string, std::string> notes_, saved_notes_;
  std::vector<core::EventDraft> unsaved_agent_events_;  ///< stored by the next save, with the state that they report
  asio::steady_timer wake_timer_, saved_;
  std::optional<Time> asleep_until_;
  bool opened_ = false, started_ = false, stopping_ = false, ended_ = false, exhausted_ = false, disabled_ = false,
       unflushed_ = false, save_now_ = false, checked_ = false, planning_ = false, unsaved_replay_ = false;
  std::optional<std::int64_t> rewind_to_;
  Time next_check_{}, next_save_{}, store_at_{}, drain_until_{};
  Outage outage_;
  std::int64_t delivered_ = 0;
  int idle_ = 0;
  std::uint64_t saves_failed_ = 0, missed_wakeups_ = 0;
  Duty doing_ = Duty::sleep;           ///< the duty that the loop is waiting for
  std::optional<Time> waiting_since_;  ///< time since which events wait without progress
  bool stall_reported_ = false, limit_reported_ = false;
  std::string last_error_;
};

}  // namespace driftd::delivery
