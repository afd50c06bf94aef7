// SPDX-License-Identifier: Apache-2.0
// Maps answers to records. Pure: no I/O, no clock; the caller sets observed_ns.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "driftd/sdk/types.hpp"
#include "redis/config.hpp"
#include "redis/info.hpp"

namespace driftd::redis {

/// Returns the `server` record. `config` is the answer of CONFIG GET (at a Sentinel: SENTINEL CONFIG GET) for the
/// patterns `asked`; `modules` is nullopt if it cannot be read. `known` are the directives that the schema names; those
/// that were not requested are unread.
sdk::Record server_record(const Info& info, const Config& config,
                          const std::optional<std::vector<std::string>>& modules,
                          const std::vector<std::string>& asked = {"*"}, const std::vector<std::string>& known = {});

/// Returns the `replication` record. `endpoint` is the address of the primary that the Sentinels named; empty without
/// Sentinels.
sdk::Record replication_record(const Info& info, const std::string& endpoint = {});

/// A change of the `replication` record, values as JSON text.
struct HistoryChange {
  std::uint32_t index;
  std::string path, old_value, new_value;
};
/// Returns the changes of the replication id that only say that the same history goes on under a new name, as after a
/// promotion.
std::vector<std::pair<std::uint32_t, std::string>> equivalent_history_changes(
    const std::vector<HistoryChange>& changes);

}  // namespace driftd::redis
