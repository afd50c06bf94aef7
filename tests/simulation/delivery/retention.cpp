// SPDX-License-Identifier: Apache-2.0
// What leaves the store: too old, or too much.
#include <limits>

#include "simulation/delivery/world.hpp"

namespace driftd::sim {
namespace {

using namespace std::chrono_literals;

constexpr int kLogPage = 1'000, kMostSlices = 50;
constexpr std::uint64_t kOtherDraws = 0x9e3779b97f4a7c15;
constexpr std::int64_t kLeastBytes = 300 << 10, kMostBytes = 1 << 20;

}  // namespace

/// Draws from numbers of its own, so that the other lives of a seed stay what they were.
void World::plan_deletions() {
  std::mt19937_64 drawn(seed_ ^ kOtherDraws);
  if (drawn() % 4 == 0) delivered_ = Duration(2min) + std::chrono::seconds(drawn() % 480);
  if (drawn() % 5 == 0)
    max_bytes_ =
        kLeastBytes + static_cast<std::int64_t>(drawn() % static_cast<std::uint64_t>(kMostBytes - kLeastBytes));
}

Task<Status> World::prune() {
  DRIFTD_CO_CHECK(co_await read_log());
  const Nanos wall = clock_.wall();
  const Nanos before = wall - retention_.value_or(Duration(720h)).count(),
              delivered_before = wall - delivered_.value_or(Duration(168h)).count();
  for (bool more = true; more;) {
    retention_begins(before, delivered_before);
    const auto pruned = co_await process_->store->prune(delivered_before, before);
    retention_begins(before, delivered_before);
    they_may_have_left();
    if (!pruned) co_return fail(pruned.error());
    more = *pruned;
  }
  DRIFTD_CO_CHECK(co_await read_log());
  process_->relay->wake();  // the store may have appended a `gap`
  co_return Status{};
}

void World::retention_begins(Nanos undelivered_before, Nanos delivered_before) {
  if (retention_) oracle_->retention_begins(undelivered_before);
  if (delivered_) leaving_.merge(oracle_->delivered_before(delivered_before));
}

void World::they_may_have_left() { oracle_->may_have_left(std::exchange(leaving_, {})); }

/// As store::SizeLimit does.
Task<Status> World::shrink() {
  DRIFTD_CO_TRY(const auto size, co_await process_->store->shrink(std::numeric_limits<std::int64_t>::max()));
  if (size.bytes <= *max_bytes_) co_return Status{};
  store::Shrunk step{.bytes = size.bytes, .more = true};
  for (int slice = 0; step.more && slice < kMostSlices; ++slice) {
    leaving_.merge(oracle_->removable());
    const auto result = co_await process_->store->shrink(*max_bytes_);
    leaving_.merge(oracle_->removable());
    if (!result) {  // whether it was done is not known
      they_may_have_left();
      co_return fail(result.error());
    }
    step = *result;
    if (step.events == 0) leaving_.clear();
    they_may_have_left();
  }
  oracle_->note("the store has " + std::to_string(size.bytes) + " bytes, then " + std::to_string(step.bytes) + " of " +
                std::to_string(*max_bytes_));
  if (step.bytes > *max_bytes_ && step.more)
    oracle_->complain("the store is larger than it may be, and deletes without an end");
  DRIFTD_CO_CHECK(co_await read_log());
  if (step.bytes > *max_bytes_) {
    DRIFTD_CO_TRY(const auto seqs, co_await numbers_in_log());
    oracle_->check_removable(seqs);
  }
  process_->relay->wake();
  co_return Status{};
}

/// Enters what the store has and nobody was sent yet, before it may be deleted.
Task<Status> World::read_log() {
  for (bool more = true; more;) {
    DRIFTD_CO_TRY(const auto events, co_await process_->store->events(log_read_to_, kLogPage));
    for (const auto& event : events) {
      oracle_->found(event);
      log_read_to_ = event.stamp.seq;
    }
    more = events.size() == static_cast<std::size_t>(kLogPage);
  }
  co_return Status{};
}

Task<Result<std::set<std::int64_t>>> World::numbers_in_log() {
  std::set<std::int64_t> out;
  for (bool more = true; more;) {
    const std::int64_t after = out.empty() ? 0 : *out.rbegin();
    DRIFTD_CO_TRY(const auto events, co_await process_->store->events(after, kLogPage));
    for (const auto& event : events) out.insert(out.end(), event.stamp.seq);
    more = events.size() == static_cast<std::size_t>(kLogPage);
  }
  co_return out;
}

}  // namespace driftd::sim
