// SPDX-License-Identifier: Apache-2.0
// What the agent does beside delivering, and what persons ask of it: backpressure, replays, dead letters.
#include "base/fatal.hpp"
#include "simulation/delivery/world.hpp"

namespace driftd::sim {
namespace {

using namespace std::chrono_literals;

constexpr Duration kUpkeepEvery = 5s, kUpkeepAtRest = 60s;
constexpr int kPruneEvery = 12;  // rounds

}  // namespace

/// Some agents have a retention that an outage exceeds, some a backlog that is soon full, some delete early what was
/// delivered, or have little room.
void World::plan_upkeep() {
  if (pick(4) == 0) retention_ = between(6min, 20min);
  if (pick(4) == 0) limits_ = delivery::BacklogLimits{static_cast<std::int64_t>(100 + pick(400)), 1 << 30};
  plan_deletions();
  if (deletes() || limits_) upkeep_later();
}

void World::upkeep_later() {
  at(now() + (now() < end_ ? kUpkeepEvery : kUpkeepAtRest), [this] {
    const bool runs = process_ && ready_since_ && !std::exchange(upkeep_runs_, true);
    if (runs) asio::co_spawn(process_->executors.get(Executors::core), upkeep(), fatal);
    upkeep_later();
  });
}

Task<void> World::upkeep() {
  const Status done = co_await keep_up();
  if (!done) oracle_->note("upkeep: " + std::string(render(done.error().code)));
  upkeep_runs_ = false;
}

Task<Status> World::keep_up() {
  if (limits_) {
    const auto undelivered = oracle_->undelivered();
    DRIFTD_CO_TRY(const auto backlog, co_await process_->store->backlog());
    held_ = delivery::backpressure(backlog, *limits_).holds_cycles;
    check_backpressure(undelivered);
  }
  if (!deletes() || ++upkeep_rounds_ % kPruneEvery != 0) co_return Status{};
  DRIFTD_CO_CHECK(co_await prune());
  if (max_bytes_) DRIFTD_CO_CHECK(co_await shrink());
  co_return Status{};
}

/// What waits by the oracle's book, before the store was asked, is what the store must have counted, but for what
/// arrived or was committed meanwhile and for acknowledgements that are not saved.
void World::check_backpressure(std::size_t undelivered) {
  const bool quiet = undelivered == 0 && oracle_->undelivered() == 0;
  idle_since_ = quiet ? idle_since_.value_or(now()) : std::optional<Time>();
  const bool works = !disk_->faults.full && disk_->faults.sync_fails == 0 && now() > store_works_since_ + 10s;
  if (held_ && works && idle_since_ && now() - *idle_since_ > 2min && oracle_->all_arrived())
    oracle_->complain("commits are held though nothing has waited for two minutes");
  const auto limit = static_cast<std::size_t>(limits_->events);
  if (!held_ && undelivered >= limit && oracle_->undelivered() >= limit)
    oracle_->complain("commits go on though " + std::to_string(undelivered) + " of " + std::to_string(limit) +
                      " events wait");
}

void World::order_replay() {
  if (!process_ || !ready_since_ || oracle_->newest() == 0) return;
  Receiver* const all[] = {bus_.get(), hook_.get(), log_.get()};
  core::Control::Replay request;
  request.sink = all[pick(3)]->receipts.name();
  request.from_seq = 1 + static_cast<std::int64_t>(pick(static_cast<std::uint64_t>(oracle_->newest())));
  if (pick(2) == 0) request.rate = 5 + static_cast<int>(pick(100));
  asio::co_spawn(process_->executors.get(Executors::core), replay(std::move(request)), fatal);
}

Task<void> World::replay(core::Control::Replay request) {
  const bool of_hook = request.sink == "hook";  // which counts an event as refused after five attempts
  Receipts& receipts = of_hook ? hook_->receipts : request.sink == "bus" ? bus_->receipts : log_->receipts;
  const auto settled = oracle_->settled_from(receipts, request.from_seq);
  const std::string asked = request.sink + " from event " + std::to_string(request.from_seq);
  oracle_->note("a replay is asked of " + asked);
  if (!of_hook) receipts.replay_asked(settled);
  const auto count = co_await process_->relay->replay(std::move(request));
  if (!of_hook) receipts.replay_answered(count.has_value());
  oracle_->note("the replay of " + asked + ": " + (count ? std::to_string(*count) : count.error().message));
  if (count && *count < static_cast<std::int64_t>(settled.size()) && !receipts.was_rewound() && !deletes())
    oracle_->complain("the replay of " + asked + " sends " + std::to_string(*count) + " events; " +
                      std::to_string(settled.size()) + " were acknowledged");
}

void World::order_dead_letters() {
  if (!process_ || !ready_since_) return;
  const std::string verb = pick(3) == 0 ? "drop" : "replay";
  if (verb == "replay" && pick(2) == 0) hook_->poisoned.clear();
  asio::co_spawn(process_->executors.get(Executors::core), handle_dead_letters(verb, pick(2) == 0), fatal);
}

Task<void> World::handle_dead_letters(std::string verb, bool all) {
  Receipts& receipts = hook_->receipts;
  std::set<std::int64_t> dead = oracle_->dead_letters_of(receipts);
  if (!all && !dead.empty()) dead = {*dead.begin()};
  oracle_->handled(verb, dead);
  std::map<std::int64_t, int> times;
  for (const auto seq : dead) times[seq] = receipts.times_given_up(seq);
  std::vector<std::int64_t> seqs;
  if (!all) seqs.assign(dead.begin(), dead.end());
  oracle_->note("dead letters of hook: " + verb + " " + std::to_string(dead.size()));
  if (!all && seqs.empty()) co_return;
  const auto count = co_await process_->relay->dead_letter("hook", verb, std::move(seqs));
  oracle_->note("dead letters of hook: " + (count ? std::to_string(*count) : count.error().message));
  if (!count) co_return;
  if (*count > static_cast<std::int64_t>(dead.size()))
    oracle_->complain(std::to_string(*count) + " dead letters: there are " + std::to_string(dead.size()));
  if (*count < static_cast<std::int64_t>(dead.size())) co_return;  // some are being replayed; the answer says not which
  for (const auto seq : dead) {
    if (verb == "drop") oracle_->dropped_for_good(seq);
    if (verb == "replay" && times[seq] == receipts.times_given_up(seq)) receipts.requeued(seq);
  }
}

}  // namespace driftd::sim
