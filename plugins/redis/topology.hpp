// SPDX-License-Identifier: Apache-2.0
// Maps what a cluster node and Sentinels report about the others. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "driftd/sdk/types.hpp"
#include "redis/info.hpp"

namespace driftd::redis {

/// Returns the `cluster` record. `nodes` is the answer of CLUSTER NODES, `info` that of CLUSTER INFO (empty: not
/// readable). Throws CORRUPT if a line is not one of CLUSTER NODES.
sdk::Record cluster_record(const std::string& nodes, const Info& info);

/// Returns what a change of CLUSTER NODES can concern (members, addresses, roles, slots), as a part of the change
/// stamp.
std::string cluster_fingerprint(const std::string& nodes);

/// Answer of one Sentinel to SENTINEL MASTERS: master → field → value.
struct SentinelView {
  std::string sentinel;  ///< its address
  std::map<std::string, Info> masters;
};

/// Returns one record for each master that any Sentinel knows. Fields on which the Sentinels disagree are unread,
/// because it is not known which of them is right.
std::vector<sdk::Record> sentinel_records(const std::vector<SentinelView>& views);

/// Returns `mymaster: 10.0.0.1:6379 (s1:26379), 10.0.0.2:6379 (s2:26379)` for each master with more than one primary.
std::vector<std::string> primary_conflicts(const std::vector<SentinelView>& views);

/// Returns the primary of `master` with the highest configuration epoch, as Sentinels decide it; empty if no Sentinel
/// knows one.
std::string primary_named(const std::vector<SentinelView>& views, const std::string& master);

}  // namespace driftd::redis
