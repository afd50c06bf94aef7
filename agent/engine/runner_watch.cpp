// SPDX-License-Identifier: Apache-2.0
// The watch of a backend: kept up while the provider has one, its pages judged as they come.
#include <algorithm>

#include "base/log.hpp"
#include "engine/runner.hpp"

namespace driftd::engine {
namespace {

constexpr std::chrono::minutes kRelistInterval{1};  // at most so often, after a watch told what was older than what is
                                                    // known

}  // namespace

Task<void> Runner::watch_loop() {
  const auto self = shared_from_this();
  Backoff backoff(std::chrono::milliseconds(500), std::chrono::milliseconds(30'000));
  while (!stopping_) {
    if (last_full_ == Schedule::Clock::time_point{}) {  // the first full cycle comes first: it makes the baseline
      co_await wait_until(watch_due_, Schedule::Clock::time_point::max());
      continue;
    }
    if (!ledger_.info()->has_watch) {
      co_await wait_until(watch_due_, Schedule::Clock::time_point::max());  // until an upgraded plugin has one
      continue;
    }
    auto handler = [this](core::RecordPage page) { return process_watch_page(std::move(page)); };
    const auto started = context_->clock.mono();
    watched_ = Moment::of(context_->clock);
    const Status ended_with = co_await session_->watch(ledger_.row().watch_cursor, handler);
    if (stopping_) break;
    if (last_full_ == Schedule::Clock::time_point{}) continue;  // another plugin serves
    hint();                                                     // whatever happened while nobody watched
    if (!ended_with && ended_with.error().code == Code::cursor_expired) {
      full_next_ = true;
      ledger_.row().watch_cursor.clear();  // from now; the full refresh finds what was missed
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
  const Moment received = Moment::of(context_->clock);  // a cycle may hold the turn for a while
  const Moment before = std::exchange(watched_, received);
  const AsyncMutex::Guard held = co_await cycle_mutex_.lock();
  const auto status = co_await judge_page(std::move(page), before, received, true);
  co_return status;
}

/// Under the AsyncMutex. `ready`: whoever judges knows the page's kinds.
Task<Status> Runner::judge_page(core::RecordPage page, Moment before, Moment received, bool ready) {
  if (!ready || identity_held_ || identity_changed_ || identity_missing_ || stopping_ || held_back_) {
    full_next_ = true;  // what is dropped here is found by the first cycle after it
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
    // What a cycle has read is newer. Should that be wrong (a clock, a server whose list lags behind its watch), a list
    // shows it; to a cursor the provider would say "unchanged", for it has told of the change.
    relist_at_ = std::min(relist_at_, std::max(received.mono, relisted_at_ + kRelistInterval));
    due_.cancel();
  }
  co_return status;
}

}  // namespace driftd::engine
