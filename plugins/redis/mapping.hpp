// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "driftd/sdk/types.hpp"
#include "redis/client.hpp"

namespace driftd::redis {

using Info = std::map<std::string, std::string>;

/// `INFO` as fields; comments and sections are dropped.
Info parse_info(const std::string& text);

/// What stands for "nothing that we read can have changed": run id, role and primary, and the call counters of the
/// commands that change configuration, ACLs or modules. Empty before Redis 7.0, whose INFO does not count subcommands:
/// then every cycle reads everything.
std::string gate(const Info& info, const std::string& scope);

/// The one `server` resource. `config` as CONFIG GET * gave it; `modules` absent: not readable, see unread.
sdk::Record server_record(const Info& info, const std::map<std::string, std::string>& config,
                          const std::optional<std::vector<std::string>>& modules);
/// The one `replication` resource.
sdk::Record replication_record(const Info& info);
/// One line of ACL LIST; CORRUPT when it is none.
sdk::Record acl_record(const std::string& line);

sdk::Health health_of(const Info& info);

}  // namespace driftd::redis
