// SPDX-License-Identifier: Apache-2.0
// A sink that a reload adds, that is stopped and started, and that is removed with what waits for it.
#include "base/fatal.hpp"
#include "simulation/delivery/world.hpp"

namespace driftd::sim {
namespace {

using namespace std::chrono_literals;

}  // namespace

void World::spawn_extra(Task<void> (World::*change)()) {
  extra_.busy = true;
  asio::co_spawn(process_->executors.get(Executors::core), (this->*change)(), fatal);
}

/// A page whose routes were resolved before a sink was removed must not be committed after it.
void World::when_nothing_is_committed(std::function<void()> what) {
  for (const auto& backend : backends_) {
    if (!backend.busy) continue;
    return at(now() + 100ms, [this, what = std::move(what)] { when_nothing_is_committed(what); });
  }
  what();
}

void World::change_extra() {
  if (extra_.busy) return;
  const bool runs = process_ && ready_since_;
  if (!extra_.wanted) {
    oracle_->note("extra is put into the configuration");
    extra_.wanted = extra_.used = true;
    if (runs) spawn_extra(&World::add_extra);
    return;
  }
  const auto what = pick(3);
  if (what == 0 && runs) return spawn_extra(&World::pause_extra);
  oracle_->note("extra leaves the configuration");
  extra_.wanted = extra_.routed = false;
  if (what != 1 || !runs) return;  // the next process knows it no more
  extra_.busy = true;
  when_nothing_is_committed([this, number = process_->number] {
    if (process_ && ready_since_ && process_->number == number) spawn_extra(&World::remove_extra);
  });
}

Task<void> World::add_extra() {
  const Status started = co_await process_->relay->start_sink("extra", "file", extra_.file->connect());
  oracle_->note("extra starts: " + (started ? "done" : started.error().message));
  extra_.busy = false;
  if (!started) co_return;  // it begins with the next process
  extra_.routed = extra_.wanted;
  extra_.file->receipts.attached = true;
  extra_.file->receipts.calm();
}

Task<void> World::remove_extra() {
  extra_.file->receipts.attached = false;
  const Status removed = co_await process_->relay->remove_sink("extra");
  oracle_->note("extra is removed: " + (removed ? "done" : removed.error().message));
  extra_.busy = false;
}

/// Its events are kept, and it continues where it was.
Task<void> World::pause_extra() {
  extra_.file->receipts.attached = false;
  const Status stopped = co_await process_->relay->stop_sink("extra");
  oracle_->note("extra stops: " + (stopped ? "done" : stopped.error().message));
  extra_.busy = false;
  if (!stopped) co_return;
  at(now() + between(1s, 60s), [this, number = process_->number] {
    const bool same = process_ && ready_since_ && process_->number == number;
    if (same && extra_.wanted && !extra_.busy && !process_->relay->has("extra")) spawn_extra(&World::add_extra);
  });
}

/// At the end it is there again, so that it gets what was kept for it.
void World::want_extra() {
  if (!extra_.used) return;
  extra_.wanted = true;
  const bool absent = process_ && ready_since_ && !extra_.busy && !process_->relay->has("extra");
  if (absent) return spawn_extra(&World::add_extra);
  at(now() + 20s, [this] {
    if (!extra_.file->receipts.attached) want_extra();
  });
}

}  // namespace driftd::sim
