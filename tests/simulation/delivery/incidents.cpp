// SPDX-License-Identifier: Apache-2.0
// What goes wrong in an hour, and how it ends.
#include "base/fatal.hpp"
#include "simulation/delivery/world.hpp"

namespace driftd::sim {
namespace {

using namespace std::chrono_literals;

constexpr Duration kLife = 1h;
/// After the life of an hour nothing is wrong any more. A webhook's event that was refused in several lives waits for
/// its next attempts as long as its schedule says.
constexpr Duration kLongestRest = 24h;

}  // namespace

void World::run() {
  end_ = now() + kLife;
  plan_incidents();
  tick();
  start();
  run_until(end_);
  finish();
}

void World::plan_incidents() {
  const auto count = 4 + pick(14);
  for (std::uint64_t i = 0; i < count; ++i) {
    at(now() + between(10s, kLife - 2min), [this] { begin_incident(); });
  }
}

void World::begin_incident() {
  const Duration lasts = pick(3) == 0 ? between(1min, 10min) : between(1s, 40s);
  const auto healed = [this, lasts](Receiver& receiver) {
    receiver.disturb();
    at(now() + lasts, [&receiver] { receiver.heal(); });
  };
  const auto what = pick(18);
  if (what < 3) return healed(*bus_);
  if (what < 6) return healed(*hook_);
  if (what < 8) return healed(*log_);
  if (what < 12) {
    end_process(what < 10, "incident");
    return start_later(between(100ms, 20s));
  }
  if (what < 14) {
    for (std::size_t i = 0; i < backends_.size(); ++i) commit(i, 60 + static_cast<int>(pick(240)));
    return;
  }
  if (what == 14) return stop_gracefully();
  oracle_->note("disk incident " + std::to_string(what));
  if (what == 15) disk_->faults.full = true;
  if (what == 16) slow_disk();
  if (what == 17) disk_->faults.sync_fails = 0.2;
  at(now() + std::min<Duration>(lasts, 2min), [this] {
    disk_->faults = {};
    store_works_since_ = now() + 5s;
  });
}

/// Many events are acknowledged while a save is under way, and the process may be killed then.
void World::slow_disk() {
  disk_->faults.sync_takes = pick(2) == 0 ? 400ms : 2s;
  for (std::size_t i = 0; i < backends_.size(); ++i) commit(i, 300);
  if (pick(2) == 0) return;
  at(now() + between(2s, 8s), [this] { end_process(false, "during a slow save"); });
  start_later(10s);
}

void World::heal() {
  committing_ = false;
  disk_->faults = {};
  store_works_since_ = now() + 1s;
  for (Receiver* receiver : std::initializer_list<Receiver*>{bus_.get(), hook_.get(), log_.get()}) receiver->heal();
}

/// Everything works again: all that was committed must arrive.
void World::finish() {
  run_until(now() + 1min);  // incidents that began late end by themselves
  heal();
  if (hook_->disabled) end_process(false, "the webhook is disabled until a restart");
  start();
  const Time limit = now() + kLongestRest;
  while (oracle_->complaints().empty() && now() < limit && !(ready_since_ && oracle_->all_arrived()))
    run_until(now() + (now() + kLongestRest - limit < 1h ? 5s : 60s));
  run_until(now() + 5s);
  oracle_->check_end();
  if (!oracle_->complaints().empty()) return;
  std::optional<std::vector<core::SinkTotals>> totals;
  asio::co_spawn(process_->executors.get(Executors::core), read_totals(totals), fatal);
  run_until(now() + 1s);
  if (totals) {
    oracle_->check_totals(*totals);
  } else {
    oracle_->complain("the totals cannot be read");
  }
}

Task<void> World::read_totals(std::optional<std::vector<core::SinkTotals>>& out) {
  auto totals = co_await process_->store->sink_totals();
  if (totals) out = std::move(*totals);
}

}  // namespace driftd::sim
