// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "sinks/kafka/client.hpp"

namespace driftd::sinks {

/// What a position of a partition has. `unread`: the account may not read it; `unchecked`: the leader gave no answer.
enum class Found { ours, not_ours, unread, unchecked };

/// The offsets that a partition has: `begin` up to, but without, `end`.
struct Range {
  std::int64_t begin = 0, end = 0;
};
using Ranges = std::map<std::int32_t, Range>;

/// Returns the ranges of those partitions whose leaders answer, within some seconds. [io]
Ranges ranges_of(const KafkaClient& client, const std::set<std::int32_t>& partitions);

struct ReadRecord {
  Found found = Found::unchecked;  ///< ours: a record has this offset; not_ours: none has
  std::string id;                  ///< its `ce_id`; empty if it has none
};
/// Reads one record of each partition at the given offset, all at once. Partitions without an answer within 5 s are
/// `unchecked`. [io, one thread]
Result<std::map<std::int32_t, ReadRecord>> read_ids(KafkaClient& client,
                                                    const std::map<std::int32_t, std::int64_t>& offsets);

}  // namespace driftd::sinks
