// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <functional>
#include <memory>
#include <set>

#include "core/ports/control.hpp"
#include "core/ports/metrics.hpp"
#include "core/ports/sink.hpp"
#include "delivery/window.hpp"

namespace driftd::delivery {

struct RelaySettings {
  std::string agent, cluster = "default";
  /// Sinks that an agent event (dead letter, gap, parked) is routed to; the sink it is about is taken out.
  std::function<std::vector<std::string>(const core::AgentEvent&)> routes;
  std::vector<std::string> drop_pending;  ///< sinks gone from the config whose pending events may go
  Millis drain{10'000};
  Millis check_every{60'000};
  Millis disable_after = std::chrono::hours(120);  ///< webhooks: of nothing but failures
  core::Metrics* metrics = nullptr;                ///< may be null; outlives the relay
  unsigned seed = 0;                               ///< of the jitter; 0: random
};

/// Everything a lane shares with its relay; outlives it.
struct LaneContext {
  asio::any_io_executor core;
  core::Outbox& outbox;
  const Clock& clock;
  RelaySettings settings;
  std::function<void()> wake_all;  ///< an agent event was appended
};

/// Delivers the events routed to one sink: fetch → send → settle. Never touches another lane. Core thread.
class Lane : public std::enable_shared_from_this<Lane> {
 public:
  Lane(std::shared_ptr<LaneContext> context, std::string name, std::string type, std::unique_ptr<core::Sink> sink);

  /// Runs until stop(); starts with the cursor, then the sink (again and again while it does not start).
  Task<void> run();
  /// Looks at the world again: new events, a moved clock.
  void ring();
  /// Ends run(): no new sends, waits for those in flight at most `drain`, saves, stops the sink.
  void stop();
  bool stopped() const { return ended_; }
  core::SinkView view() const;

  /// Sends stored events again, marked replay, behind live traffic, at most `rate` a second (0: no limit). Returns how
  /// many there are; they go out in the background.
  Task<Result<std::int64_t>> replay(core::Control::Replay request);
  /// `replay` or `drop`; empty `seqs`: all dead letters of this sink. Returns how many.
  Task<Result<std::int64_t>> dead_letter(std::string verb, std::vector<std::int64_t> seqs);

 private:
  struct ReplayJob {
    std::vector<std::int64_t> seqs;  ///< in order; `at` is the next
    std::size_t at = 0;
    std::deque<core::StoredEvent> ready;
    Time next{};
    int rate = 0;
  };

  Task<void> step();
  Task<bool> open_cursor();
  Task<void> restore_exceptions(std::vector<core::DeliveryState> exceptions);
  Task<void> fetch();
  Task<void> load_due();
  Task<void> check();
  Task<void> rewind();
  Task<void> start_sink();
  Task<void> save();
  Task<void> finish();
  Task<void> wait();
  void send_ready();
  void send_replays();
  Task<Result<std::vector<std::int64_t>>> plan(core::Control::Replay request);  ///< what a replay will send
  Task<void> fetch_replays();
  Task<void> deliver(core::StoredEvent event);
  Task<void> deliver_replay(core::StoredEvent event);
  void judge(const core::StoredEvent& event, const core::Attempt& attempt);
  void failed(const core::StoredEvent& event, const core::Attempt& attempt);
  void endpoint_failed(const core::Attempt& attempt);
  void endpoint_alive();
  void endpoint_changed();  ///< the sink says: it came back, or wants to be checked
  void count(const core::StoredEvent& event, const core::Attempt& attempt);
  void bury(const core::StoredEvent& event, int attempts, const std::string& error);
  void disable(const std::string& why);
  void lost(std::int64_t seq);
  void refuse_to_stall(const std::string& doing, const Error& error);
  void tell(std::string what, std::string message, std::map<std::string, std::string> details);
  Task<void> append(core::AgentEvent event);
  bool may_send() const;
  bool must_save() const;
  Time next_time() const;
  Time now() const { return context_->clock.mono(); }

  std::shared_ptr<LaneContext> context_;
  std::string name_, type_;
  std::unique_ptr<core::Sink> sink_;
  core::RetryPolicy policy_;
  RetrySchedule schedule_;
  Circuit circuit_;
  Window window_;
  std::map<std::string, std::string> notes_, saved_notes_;
  ReplayJob replay_;
  bool planning_ = false;
  std::set<std::string> replaying_;  ///< keys of replays in flight
  std::set<std::string> failing_keys_;
  int failures_in_row_ = 0;
  asio::steady_timer bell_;
  bool rung_ = false, opened_ = false, started_ = false, stopping_ = false, ended_ = false, exhausted_ = false,
       disabled_ = false, unflushed_ = false, force_save_ = false, checked_ = false;
  std::optional<std::int64_t> rewind_to_;
  Time next_check_{}, next_save_{}, next_try_{}, drain_until_{};
  std::optional<Nanos> failing_since_;
  std::int64_t delivered_ = 0;
  int telling_ = 0;
  std::string last_error_;
};

}  // namespace driftd::delivery
