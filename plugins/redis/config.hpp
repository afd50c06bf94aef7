// SPDX-License-Identifier: Apache-2.0
// CONFIG GET as attributes. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace driftd::redis {

using Config = std::map<std::string, std::string>;

/// The value of a directive as JSON text. A list of words becomes a list, `notify-keyspace-events` its flags with `A`
/// spelt out, `save` its points, `client-output-buffer-limit` an object by class; all else stays as it is. The schema
/// says which of them are sets.
std::string config_value(const std::string& name, const std::string& value);

/// All directives as one JSON object: without `replicaof` (the replication resource has it), and without a name that a
/// newer one of the same answer stands for (`slave-…`, `…-ziplist-…`, `lua-time-limit`).
std::string config_object(const Config& config);

/// The directive holds a secret that the schema does not know by name: of a module, or of a newer server.
bool secret_directive(const std::string& name);

/// `none`, `rdb`, `aof` or `rdb+aof`; empty when the answer does not say.
std::string persistence(const Config& config);

/// CONFIG GET's own globs: `*`, `?`; names fold their case.
bool matches_pattern(const std::string& name, const std::vector<std::string>& patterns);

}  // namespace driftd::redis
