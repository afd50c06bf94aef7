// SPDX-License-Identifier: Apache-2.0
// CONFIG GET as attributes. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace driftd::redis {

using Config = std::map<std::string, std::string>;

/// Returns the value of a directive as JSON text. A list of words becomes a list, `notify-keyspace-events` its flags
/// with `A` expanded, `save` its points, `client-output-buffer-limit` an object by class; all others stay texts. The
/// schema says which of them are sets.
std::string config_value(const std::string& name, const std::string& value);

/// Returns all directives as one JSON object, without `replicaof` (it belongs to the replication resource) and without
/// old names of directives that the same answer also holds under their newer name (`slave-…`, `…-ziplist-…`,
/// `lua-time-limit`).
std::string config_object(const Config& config);

/// Returns true if the directive holds a secret that the schema does not list: of a module, or of a newer server.
bool secret_directive(const std::string& name);

/// Returns `none`, `rdb`, `aof` or `rdb+aof`; empty if the answer does not tell.
std::string persistence(const Config& config);

/// Returns true if one of the globs of CONFIG GET (`*`, `?`) matches the name, ignoring case.
bool matches_pattern(const std::string& name, const std::vector<std::string>& patterns);

}  // namespace driftd::redis
