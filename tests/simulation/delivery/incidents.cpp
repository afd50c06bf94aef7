// SPDX-License-Identifier: Apache-2.0
// What goes wrong in an hour, and how it ends.
#include <algorithm>

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
  const auto what = pick(26);
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
  if (what == 18 || what == 19) return order_replay();
  if (what == 20 || what == 21) return order_dead_letters();
  if (what == 22) return slow_bus_that_loses_its_tail();
  if (what == 24 || what == 25) return change_extra();
  if (what == 23) return outage(between(5min, 25min));
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

/// Messages overtake each other while saves go on, and then the newest of them are lost: what was settled late is lost,
/// and what was settled early is not.
void World::slow_bus_that_loses_its_tail() {
  bus_->slow = true;
  for (std::size_t i = 0; i < backends_.size(); ++i) commit(i, 200);
  at(now() + between(200ms, 8s), [this] { bus_->lose_tail(1 + pick(200)); });
  at(now() + 10s, [this] { bus_->heal(); });
}

/// One receiver takes nothing for longer than some agents keep events.
void World::outage(Duration lasts) {
  const auto which = pick(3);
  if (which == 0) bus_->go_down();
  if (which == 1) hook_->refuse();
  if (which == 2) log_->fail_writes();
  Receiver* const receiver = which == 0   ? static_cast<Receiver*>(bus_.get())
                             : which == 1 ? static_cast<Receiver*>(hook_.get())
                                          : log_.get();
  oracle_->note("outage of " + receiver->receipts.name());
  at(now() + lasts, [receiver] { receiver->heal(); });
}

void World::heal() {
  committing_ = false;
  disk_->faults = {};
  store_works_since_ = now() + 1s;
  for (Receiver* receiver : receivers_) receiver->heal();
}

/// Everything works again: all that was committed must arrive.
void World::finish() {
  run_until(now() + 1min);  // incidents that began late end by themselves
  heal();
  if (hook_->disabled) end_process(false, "the webhook is disabled until a restart");
  want_extra();
  start();
  const Time limit = now() + kLongestRest;
  const Time soon = now() + 1h;
  while (oracle_->complaints().empty() && now() < limit && !(ready_since_ && oracle_->all_arrived()))
    run_until(now() + (now() < soon ? 5s : 60s));
  run_until(now() + 5s);
  if (!oracle_->complaints().empty()) return;
  Books books = look_at_books();
  const auto pending = [&] {  // dead letters that a person replays
    return std::any_of(books.totals.begin(), books.totals.end(), [](const auto& one) { return one.pending != 0; });
  };
  while (oracle_->complaints().empty() && now() < limit && pending()) {
    run_until(now() + (now() < soon ? 5s : 60s));
    books = look_at_books();
  }
  oracle_->check_end();
  if (!oracle_->complaints().empty()) return;
  if (books.log) oracle_->check_log(*books.log);
  oracle_->check_dead_letters(books.dead);
  oracle_->check_totals(books.totals);
}

World::Books World::look_at_books() {
  std::optional<Books> books;
  if (process_) asio::co_spawn(process_->executors.get(Executors::core), read_books(books), fatal);
  run_until(now() + 1s);
  if (!books) oracle_->complain("the books cannot be read");
  return books.value_or(Books{});
}

Task<void> World::read_books(std::optional<Books>& out) {
  auto totals = co_await process_->store->sink_totals();
  auto dead = co_await process_->store->dead_letters("hook", 10'000);
  if (!totals || !dead) co_return;
  Books books{std::move(*totals), std::move(*dead), {}};
  if (deletes()) {
    auto seqs = co_await numbers_in_log();
    if (!seqs) co_return;
    books.log = std::move(*seqs);
  }
  out = std::move(books);
}

}  // namespace driftd::sim
