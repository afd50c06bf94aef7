// SPDX-License-Identifier: Apache-2.0
#include "engine/watch_loop.hpp"

#include <algorithm>
#include <utility>

#include "base/backoff.hpp"
#include "base/log.hpp"
#include "core/ports/session.hpp"
#include "engine/context.hpp"
#include "engine/cycle_plan.hpp"
#include "engine/ledger.hpp"

namespace driftd::engine {

WatchLoop::WatchLoop(std::shared_ptr<Context> context, Ledger& ledger, core::Session& session, CyclePlan& plan,
                     Judge judge)
    : context_(std::move(context)),
      ledger_(ledger),
      session_(session),
      plan_(plan),
      judge_(std::move(judge)),
      timer_(context_->core) {}

/// False before the first full cycle, which makes the baseline, and until an upgraded plugin has a watch.
bool WatchLoop::can_watch() const { return plan_.has_baseline() && ledger_.info()->has_watch; }

Task<void> WatchLoop::run() {
  Backoff backoff(std::chrono::milliseconds(500), std::chrono::milliseconds(30'000));
  while (!timer_.stopped()) {
    if (!can_watch()) {
      co_await timer_.wait_until(LoopTimer::Time::max());
      continue;
    }
    auto handler = [this](core::RecordPage page) { return process_page(std::move(page)); };
    last_page_ = Moment::of(context_->clock);
    const auto started = last_page_.mono;
    const Status ended_with = co_await session_.watch(ledger_.row().watch_cursor, handler);
    if (timer_.stopped()) break;
    if (!plan_.has_baseline()) continue;  // another plugin runs now
    plan_.hint();                         // for changes while nothing was watched
    if (!ended_with && ended_with.error().code == Code::cursor_expired) {
      plan_.require_full();
      ledger_.row().watch_cursor.clear();  // watch from now on; the full refresh finds what was missed
    }
    if (!ended_with) log::room("engine").warn("{}: watch: {}", ledger_.spec().name, ended_with.error().message);
    if (context_->clock.mono() - started > std::chrono::minutes(1)) backoff.reset();
    co_await timer_.wait_until(context_->clock.mono() + backoff.next());
  }
}

Task<Status> WatchLoop::process_page(core::RecordPage page) {
  const bool has_cursor =
      std::any_of(page.marks.begin(), page.marks.end(), [](const auto& m) { return !m.cursor.empty(); });
  if (page.records.empty() && !has_cursor) {
    plan_.hint();
    co_return Status{};
  }
  const Moment received = Moment::of(context_->clock);  // before waiting for a cycle, which may take long
  const Moment before = std::exchange(last_page_, received);
  const auto status = co_await judge_(std::move(page), before, received);
  co_return status;
}

}  // namespace driftd::engine
