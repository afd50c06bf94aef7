// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <map>
#include <string>

#include "driftd/sdk/types.hpp"

namespace driftd::redis {

using Info = std::map<std::string, std::string>;

/// The sections of INFO that are read. All of them would hold what any client can make long (`errorstats` before 7.2).
extern const std::array<const char*, 8> kInfoSections;

/// `INFO` as fields; comments are dropped, and of a field that is there twice the first counts. Of `# Replication` and
/// what is behind it only known fields are taken, each from where the server writes it: with REPLCONF a replica puts
/// lines of its own there.
Info parse_info(const std::string& text);
/// The field, or nothing.
std::string get(const Info& info, const std::string& key);

std::string product_of(const Info& info);  ///< redis, valkey …
std::string version_of(const Info& info);  ///< of the product
std::string mode_of(const Info& info);     ///< standalone, cluster or sentinel
std::string role_of(const Info& info);     ///< primary, replica or sentinel
std::string primary_of(const Info& info);  ///< `host:port` of a replica's primary; else empty

/// What stands for "nothing that we read can have changed": run id, role and primary, and calls and time of the
/// commands that change configuration, ACLs or modules. Empty before Redis 7.0, whose INFO does not count subcommands,
/// and at a Sentinel, whose INFO counts none: then every cycle reads everything.
std::string change_stamp(const Info& info, const std::string& scope);

/// All commands that this server has ever counted; it falls when the counters were reset.
long long commands_processed(const Info& info);

sdk::Health health_of(const Info& info);

}  // namespace driftd::redis
