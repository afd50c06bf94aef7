// SPDX-License-Identifier: Apache-2.0
// Answers to records. Pure: no I/O, no clock; the caller sets observed_ns.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "driftd/sdk/types.hpp"
#include "redis/config.hpp"
#include "redis/info.hpp"

namespace driftd::redis {

/// The one `server` resource. `config` as CONFIG GET (at a Sentinel: SENTINEL CONFIG GET) gave it for `asked`;
/// `modules` absent: not readable, see unread. `known`: the directives that the schema names; those that were not asked
/// for are unread.
sdk::Record server_record(const Info& info, const Config& config,
                          const std::optional<std::vector<std::string>>& modules,
                          const std::vector<std::string>& asked = {"*"}, const std::vector<std::string>& known = {});

/// The one `replication` resource. `endpoint`: where the primary that Sentinels named was found; empty: nobody asked
/// them.
sdk::Record replication_record(const Info& info, const std::string& endpoint = {});

/// A change of `replication` as the host found it, values as JSON text.
struct HistoryChange {
  std::uint32_t index;
  std::string path, old_value, new_value;
};
/// Changes of the replication id that only say that the same history goes on under a new name, as after a promotion.
std::vector<std::pair<std::uint32_t, std::string>> equivalent_history_changes(
    const std::vector<HistoryChange>& changes);

}  // namespace driftd::redis
