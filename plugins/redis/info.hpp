// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <map>
#include <string>

#include "driftd/sdk/types.hpp"

namespace driftd::redis {

using Info = std::map<std::string, std::string>;

/// The sections of INFO that are read. Others can be made very long by any client (`errorstats` before 7.2).
extern const std::array<const char*, 8> kInfoSections;

/// Parses INFO. Comments are dropped and the first of duplicate fields counts. From `# Replication` on only known
/// fields are taken, each from the place where the server writes it: with REPLCONF a replica can insert lines of its
/// own there.
Info parse_info(const std::string& text);
/// Returns the field, or an empty text.
std::string get(const Info& info, const std::string& key);

std::string product_of(const Info& info);  ///< redis, valkey …
std::string version_of(const Info& info);  ///< version of the product
std::string mode_of(const Info& info);     ///< standalone, cluster or sentinel
std::string role_of(const Info& info);     ///< primary, replica or sentinel
std::string primary_of(const Info& info);  ///< `host:port` of a replica's primary, else empty

/// Returns a text that is equal to an earlier one only if nothing that we read can have changed: run id, role and
/// primary, and calls and time of the commands that change configuration, ACLs or modules. Empty before Redis 7.0,
/// whose INFO does not count subcommands, and at a Sentinel, whose INFO counts none: then every cycle reads everything.
std::string change_stamp(const Info& info, const std::string& scope);

using Counters = std::map<std::string, long long>;
/// Returns how many commands this server has counted, in all and of each name. They fall if the counters were reset.
Counters counters_of(const Info& info);

sdk::Health health_of(const Info& info);

}  // namespace driftd::redis
