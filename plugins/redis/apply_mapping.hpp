// SPDX-License-Identifier: Apache-2.0
// Attributes back to commands: the inverse of config.hpp, mapping.hpp and acl.hpp. Pure. Throws common::CannotSet for
// what no command sets.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "driftd/sdk/extensions.hpp"
#include "redis/acl.hpp"
#include "redis/config.hpp"

namespace driftd::redis {

using Words = std::vector<std::string>;

/// Renders a command as redis-cli reads it: words with blanks, quotes or bytes that cannot be printed are quoted.
std::string command_text(const Words& words);

/// The inverse of common::utf8_text(): a name or value as the server has it.
std::string raw_name(const std::string& shown);

/// Returns the text that CONFIG SET needs for a value of config_value(): config_text(n, config_value(n, t)) means t.
std::string config_text(const std::string& name, const nlohmann::json& value);

/// One directive to set.
struct DirectiveChange {
  std::string name, value, old_value;  ///< as CONFIG SET takes them
  std::vector<std::string> paths;      ///< attributes that it changes
};
/// Returns the directives that a request about `server` sets. `now` is the present configuration.
std::vector<DirectiveChange> directive_changes(const Config& now, const std::vector<sdk::Change>& changes);

/// The rules of ACL SETUSER that put an acl_user back, and those that take them back. Neither contains `reset`, a
/// password or a rule about one. `now` is the user as it is.
struct UserChange {
  Words rules, undo;
};
UserChange user_change(const AclUser& now, const std::vector<sdk::Change>& changes);

}  // namespace driftd::redis
