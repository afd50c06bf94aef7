// SPDX-License-Identifier: Apache-2.0
// What a cluster node and what Sentinels say of the others. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "driftd/sdk/types.hpp"
#include "redis/info.hpp"

namespace driftd::redis {

/// The one `cluster` resource. `nodes` as CLUSTER NODES wrote it, `info` as CLUSTER INFO did, empty: not readable.
/// CORRUPT when a line is none of CLUSTER NODES.
sdk::Record cluster_record(const std::string& nodes, const Info& info);

/// What of CLUSTER NODES can be a change: members, addresses, roles, slots. For the change_stamp.
std::string cluster_fingerprint(const std::string& nodes);

/// One Sentinel and what SENTINEL MASTERS answered there: master → field → value.
struct SentinelView {
  std::string sentinel;  ///< its address
  std::map<std::string, Info> masters;
};

/// One record for each master that any Sentinel knows. What the Sentinels do not agree on is unread: which of them is
/// right is not ours to say.
std::vector<sdk::Record> sentinel_records(const std::vector<SentinelView>& views);

/// `mymaster: 10.0.0.1:6379 (s1:26379), 10.0.0.2:6379 (s2:26379)` for each master that has more than one primary.
std::vector<std::string> primary_conflicts(const std::vector<SentinelView>& views);

/// The primary of `master` by the highest configuration epoch, which is how Sentinels settle it; empty: unknown to all.
std::string primary_named(const std::vector<SentinelView>& views, const std::string& master);

}  // namespace driftd::redis
