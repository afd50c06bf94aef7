// SPDX-License-Identifier: Apache-2.0
// Events that leave the store, and what sinks lose by that. Runs on the thread that owns the connection, in a
// transaction.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "store/events.hpp"

namespace driftd::store {

/// What one sink loses in one batch of deleted events.
struct Gap {
  std::int64_t from = 0, to = 0, count = 0;
};
using Gaps = std::map<std::string, Gap>;  ///< by the sink's name

/// Deletes an event with its routes. The sinks that had not settled it lose it, which is added to `gaps`.
Status forget_event(Connection& db, std::int64_t seq, const std::vector<Outstanding>& outstanding, Gaps& gaps);

/// Why events were lost: a word for programs, and the end of the sentence for people.
struct GapReason {
  std::string word, sentence;
};
/// Writes a `gap` event for each sink.
Status write_gap_events(SqliteStore::State& state, const Gaps& gaps, const GapReason& reason);

}  // namespace driftd::store
