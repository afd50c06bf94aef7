// SPDX-License-Identifier: Apache-2.0
// The watch of a backend: restarted whenever it ends, its pages judged as they arrive.
#include <algorithm>

#include "base/backoff.hpp"
#include "base/log.hpp"
#include "engine/runner.hpp"

namespace driftd::engine {
namespace {

// Minimum time between full lists that are due because a watch sent records older than what is known.
constexpr std::chrono::minutes kRelistInterval{1};

}  // namespace

Task<void> Runner::watch_loop() {
  const auto self = shared_from_this();
  Backoff backoff(std::chrono::milliseconds(500), std::chrono::milliseconds(30'000));
  while (!stopping_) {
    if (last_full_ == Schedule::Clock::time_point{}) {  // the first full cycle makes the baseline
      co_await wait_until(watch_due_, Schedule::Clock::time_point::max());
      continue;
    }
    if (!ledger_.info()->has_watch) {
      co_await wait_until(watch_due_, Schedule::Clock::time_point::max());  // until an upgraded plugin has a watch
      continue;
    }
    auto handler = [this](core::RecordPage page) { return process_watch_page(std::move(page)); };
    const auto started = context_->clock.mono();
    watched_ = Moment::of(context_->clock);
    const Status ended_with = co_await session_->watch(ledger_.row().watch_cursor, handler);
    if (stopping_) break;
    if (last_full_ == Schedule::Clock::time_point{}) continue;  // another plugin runs now
    hint();                                                     // for changes while nothing was watched
    if (!ended_with && ended_with.error().code == Code::cursor_expired) {
      full_next_ = true;
      ledger_.row().watch_cursor.clear();  // watch from now on; the full refresh finds what was missed
    }
    if (!ended_with) log::room("engine").warn("{}: watch: {}", ledger_.spec().name, ended_with.error().message);
    if (context_->clock.mono() - started > std::chrono::minutes(1)) backoff.reset();
    co_await wait_until(watch_due_, context_->clock.mono() + backoff.next());
  }
  co_await ended();
}

Task<Status> Runner::process_watch_page(core::RecordPage page) {
  const bool has_cursor =
      std::any_of(page.marks.begin(), page.marks.end(), [](const auto& m) { return !m.cursor.empty(); });
  if (page.records.empty() && !has_cursor) {
    hint();
    co_return Status{};
  }
  const Moment received = Moment::of(context_->clock);  // before waiting for the mutex, which a cycle may hold for long
  const Moment before = std::exchange(watched_, received);
  const AsyncMutex::Guard held = co_await cycle_mutex_.lock();
  const auto status = co_await judge_page(std::move(page), before, received, true);
  co_return status;
}

/// Call it with the cycle mutex locked. `ready` is false while the page's kinds cannot be judged.
Task<Status> Runner::judge_page(core::RecordPage page, Moment before, Moment received, bool ready) {
  if (!ready || identity_held_ || identity_changed_ || identity_missing_ || stopping_ || held_back_) {
    full_next_ = true;  // the next full cycle finds what is dropped here
    if (!identity_held_ && !identity_missing_) hint();
    co_return Status{};
  }
  Cycle one(context_, ledger_, *session_, run_);
  const auto status = co_await one.watch_page(std::move(page), before, received);
  left_out_ = left_out_ || one.left_out();
  if (one.unconfirmed()) {
    full_next_ = true;
    hint();
  }
  if (one.dropped() > 0) {
    // Dropped records are older than what a cycle has read. In case that is wrong (a clock, a server whose list lags
    // behind its watch), a full list checks it soon. A refresh with a cursor would not: the provider would answer
    // "unchanged" because it has already sent the change.
    relist_at_ = std::min(relist_at_, std::max(received.mono, relisted_at_ + kRelistInterval));
    due_.cancel();
  }
  co_return status;
}

}  // namespace driftd::engine
