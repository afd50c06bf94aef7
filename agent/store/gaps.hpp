// SPDX-License-Identifier: Apache-2.0
// Events that leave the store, and what sinks lose by that. Runs on the thread that owns the connection, in a
// transaction.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "store/events.hpp"

namespace driftd::store {

/// What one sink loses in one batch of deleted events.
struct Gap {
  std::int64_t from = 0, to = 0, count = 0;
};
/// What all sinks lose, and why.
struct Gaps {
  std::string_view reason;                            ///< for programs: one of sinks.hpp
  std::string_view sentence;                          ///< for people: the end of the sentence
  std::map<std::string, Gap> of{};                    ///< by the sink's name
  std::map<std::int64_t, std::int64_t> settled_to{};  ///< by sink: the last deleted event that it had settled
};

/// Deletes an event with its routes. The sinks that had not settled it lose it, which is added to `gaps` and counted.
Status forget_event(Connection& db, std::int64_t seq, const std::vector<Outstanding>& outstanding, Gaps& gaps);
/// Writes a `gap` event for each sink, and remembers up to where each sink's settled events were deleted.
Status write_gap_events(SqliteStore::State& state, const Gaps& gaps);

/// Returns what a sink whose receiver lost everything after the event `after` cannot be sent again, because it was
/// deleted once the sink had settled it. `settled`: how many it has settled in all, deleted ones included. Its count is
/// an upper limit, 0 if nothing is missing.
Result<Gap> deleted_after(Connection& db, std::int64_t sink, std::int64_t after, std::int64_t settled);
/// Writes the `gap` event that says so.
Status write_loss_event(SqliteStore::State& state, const std::string& sink, const Gap& loss);

}  // namespace driftd::store
