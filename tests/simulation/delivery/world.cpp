// SPDX-License-Identifier: Apache-2.0
#include "simulation/delivery/world.hpp"

#include <unistd.h>
#include <boost/asio/co_spawn.hpp>
#include <cstdlib>

#include "base/fatal.hpp"
#include "simulation/delivery/seams.hpp"

namespace driftd::sim {
namespace {

using namespace std::chrono_literals;

constexpr int kHandlersOfAMoment = 1'000'000;

std::filesystem::path root_of_folders() {
  const std::filesystem::path memory = "/dev/shm";
  if (::access(memory.c_str(), W_OK) == 0) return memory;
  return std::filesystem::temp_directory_path();
}

}  // namespace

Folder::Folder() {
  std::string name = (root_of_folders() / "driftd-test-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make a folder " + name);
  path_ = std::filesystem::canonical(name);
}

Folder::~Folder() {
  std::error_code error;
  std::filesystem::remove_all(path_, error);
}

Executors::Executors() {
  for (auto& context : contexts_) {
    context = std::make_unique<Context>();
    guards_.push_back(asio::make_work_guard(*context));
  }
}

Executors::~Executors() {
  guards_.clear();
  for (const auto which : {store, io, core}) contexts_[which]->shutdown();
}

World::World(std::uint64_t seed)
    : seed_(seed),
      random_(seed),
      bus_(std::make_unique<Stream>(random_())),
      hook_(std::make_unique<Hook>(random_())),
      log_(std::make_unique<LogFile>("log", random_())) {
  extra_.file = std::make_unique<LogFile>("extra", random_());
  receivers_ = {bus_.get(), hook_.get(), log_.get(), extra_.file.get()};
  SimulatedTime::get().begin_again();
  seed_random_bytes(seed);
  register_vfs();
  std::vector<Receipts*> receipts;
  for (Receiver* receiver : receivers_) receipts.push_back(&receiver->receipts);
  oracle_ = std::make_unique<Oracle>(std::move(receipts));
  for (Receiver* receiver : receivers_) {
    receiver->oracle = oracle_.get();
    receiver->receipts.calm();
  }
  settings_.data_dir = folder_.path() / "data";
  settings_.given = store::GivenKey{store::make_key().value(), "the simulation"};
  settings_.longest_read = 1h;
  settings_.route = [](const core::AgentEvent&) { return std::vector<std::string>{"bus", "log"}; };
  disk_ = std::make_unique<Disk>(settings_.data_dir, random_());
  watched_ = pick(2) == 0;
  poison_ = pick(3) == 0 ? 0.005 : 0;
  plan_commits();
  plan_upkeep();
}

World::~World() {
  if (process_) end_process(false, "the simulation is over");
}

/// Runs what is ready at this moment, in an order that the seed draws.
void World::run_ready() {
  std::array<bool, 3> quiet{};
  int quiet_count = 0, handlers = 0;
  try {
    while (process_ && quiet_count < 3) {
      const auto which = static_cast<Executors::Which>(pick(3));
      if (quiet[which]) continue;
      const bool busy = which == Executors::store && now() < store_free_at_;
      if (busy || !process_->executors.run_one(which)) {
        quiet[which] = true;
        ++quiet_count;
        continue;
      }
      if (++handlers > kHandlersOfAMoment) return oracle_->complain("the agent is busy without an end");
      quiet.fill(false);
      quiet_count = 0;
      if (which == Executors::store) store_free_at_ = now() + disk_->take_latency();
    }
  } catch (const ProcessEnded& ended) {
    end_process(false, "it ended itself with " + std::to_string(ended.status));
    start_later(1s);
  }
}

void World::run_until(Time end) {
  while (oracle_->complaints().empty()) {
    run_ready();
    Time next = end;
    if (!plan_.empty()) next = std::min(next, plan_.begin()->first);
    if (const auto timer = SimulatedTime::get().next_timer(); timer && process_) next = std::min(next, *timer);
    if (process_ && store_free_at_ > now()) next = std::min(next, store_free_at_);
    SimulatedTime::get().move_to(next);
    while (!plan_.empty() && plan_.begin()->first <= now()) {
      const auto what = std::move(plan_.begin()->second);
      plan_.erase(plan_.begin());
      what();
    }
    if (now() >= end) return run_ready();
  }
}

void World::start_later(Duration in) {
  at(now() + in, [this] { start(); });
}

void World::start() {
  if (process_) return;
  oracle_->note("start " + std::to_string(++starts_));
  disk_->boot();
  auto process = std::make_unique<Process>();
  try {
    auto opened = store::SqliteStore::open(settings_, process->executors.get(Executors::store),
                                           process->executors.get(Executors::io), clock_);
    if (opened) process->store = std::move(*opened);
    if (!opened) oracle_->note("the store cannot be opened: " + std::string(render(opened.error().code)));
    const bool damaged = !opened && opened.error().code != Code::internal && opened.error().code != Code::budget;
    if (damaged) oracle_->complain("the store cannot be opened: " + opened.error().message);
  } catch (const ProcessEnded&) {
    oracle_->note("the process ended while it opened its store");
  }
  if (!process->store) {
    disk_->kill();
    process.reset();
    SimulatedTime::get().forget_timers();
    return start_later(2s);
  }
  store_free_at_ = now() + disk_->take_latency();
  delivery::RelaySettings relay;
  relay.agent = settings_.agent;
  relay.seed = static_cast<unsigned>(seed_ % 1'000'000 + 1);
  relay.routes = settings_.route;
  if (!extra_.wanted && pick(2) == 0) relay.drop_pending = {"extra"};
  process->relay =
      std::make_unique<delivery::Relay>(process->executors.get(Executors::core), *process->store, clock_, relay);
  process->relay->add_sink("bus", "nats", bus_->connect());
  process->relay->add_sink("hook", "webhook", hook_->connect());
  process->relay->add_sink("log", "file", log_->connect());
  if (extra_.wanted) process->relay->add_sink("extra", "file", extra_.file->connect());
  process->number = ++processes_;
  process_ = std::move(process);
  asio::co_spawn(process_->executors.get(Executors::core), begin(), fatal);
}

Task<void> World::begin() {
  const Status taken = co_await take_over();
  if (taken) {
    ready_since_ = now();
    // what was put into the configuration meanwhile is for the next process
    extra_.routed = extra_.file->receipts.attached = extra_.wanted && process_->relay->has("extra");
    oracle_->note("ready");
    co_return;
  }
  oracle_->note("not ready: " + std::string(render(taken.error().code)));
  at(now() + 1s, [this] {
    if (!process_ || ready_since_) return;
    end_process(false, "it could not begin");
    start();
  });
}

Task<Status> World::take_over() {
  DRIFTD_CO_CHECK(co_await process_->relay->start());
  DRIFTD_CO_CHECK(co_await process_->store->announce());
  for (std::size_t i = 0; i < backends_.size(); ++i) DRIFTD_CO_CHECK(co_await load_resources(i));
  process_->relay->wake();
  co_return Status{};
}

void World::end_process(bool power_loss, const std::string& why) {
  if (!process_) return;
  ++kills_;
  oracle_->note(std::string(power_loss ? "power loss" : "kill") + ": " + why);
  disk_->kill();
  drop_waiting_jobs();
  process_.reset();
  if (power_loss) {
    disk_->lose_power();
    log_->power_lost();
    extra_.file->power_lost();
  }
  life_is_over(power_loss);
}

/// Jobs that wait for the store's thread hold the store, which would keep its lock. On a dead disk each group of them
/// ends its process, and nothing else happens.
void World::drop_waiting_jobs() {
  for (bool more = true; more;) {
    try {
      more = process_->executors.run_one(Executors::store);
    } catch (const ProcessEnded&) {
      continue;
    }
  }
}

void World::life_is_over(bool power_loss) {
  SimulatedTime::get().forget_timers();
  (void)disk_->take_latency();
  ready_since_.reset();
  held_ = upkeep_runs_ = false;
  they_may_have_left();
  for (auto& backend : backends_) backend.busy = false;
  for (Receiver* receiver : receivers_) receiver->receipts.next_life(power_loss);
  extra_.busy = extra_.routed = extra_.file->receipts.attached = false;
  hook_->next_life();
}

Task<void> World::stop_relay() {
  co_await process_->relay->stop();
  process_->stopped = true;
  if (!process_->relay->abandoned()) co_return;
  at(now(), [this, number = process_->number] {  // as agent/app/run.cpp
    if (!process_ || process_->number != number) return;
    end_process(false, "a sink did not stop in time");
    committing_ = true;
    start();
  });
}

/// As SIGTERM: drains, and closes the store.
void World::stop_gracefully() {
  if (!process_ || !ready_since_) return;
  oracle_->note("stop");
  committing_ = false;
  ready_since_.reset();
  asio::co_spawn(process_->executors.get(Executors::core), stop_relay(), fatal);
  at(now() + 40s, [this, number = process_->number] {
    committing_ = true;
    if (!process_ || process_->number != number) return;
    if (!process_->stopped) oracle_->complain("the relay did not stop within 40 s");
    process_.reset();
    life_is_over(false);
    start();
  });
}

/// Once a second.
void World::tick() {
  if (process_ && watched_ && now().time_since_epoch() / 1s % 5 == 0) process_->relay->watch();
  const bool works = process_ && ready_since_ && !disk_->faults.full && disk_->faults.sync_takes < 1s;
  if (works) oracle_->check_progress(std::max(*ready_since_, store_works_since_));
  if (oracle_->complaints().empty()) at(now() + 1s, [this] { tick(); });
}

}  // namespace driftd::sim
