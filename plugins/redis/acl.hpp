// SPDX-License-Identifier: Apache-2.0
// ACL users in normal form. Pure. Source of the rules: ACL SETUSER of Redis 6.0 to 7.0 (acl.c of those versions).
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "driftd/sdk/types.hpp"

namespace driftd::redis {

/// What the server says of its own commands: category → commands, subcommands as `config|get`, as ACL CAT answers. Not
/// `all`. `slow` and `fast` together are every command.
using AclCategories = std::map<std::string, std::set<std::string>>;

/// The command rules in their order, made of the commands that they allow: `+@all` or `-@all` (which also decides about
/// commands of modules to come), then what deviates from it, sorted; a command whose subcommands all deviate stands for
/// them. Two texts of rules allow the same exactly when this is the same.
std::vector<std::string> effective_commands(const std::vector<std::string>& rules, const AclCategories& categories);

/// Rules about different commands commute, and Redis 7.0 lists them in another order after every start: sorted by the
/// command between two categories. What stands about one command keeps its order, and categories stay where they are.
std::string ordered(const std::string& commands);

/// One user as ACL LIST wrote it.
struct AclUser {
  std::string name;
  bool enabled = false;
  std::vector<std::string> flags, passwords, keys, channels, commands;
  std::vector<std::vector<std::string>> selectors;  ///< the words inside each pair of parentheses
};

/// CORRUPT when the line is none of ACL LIST.
AclUser parse_acl_line(const std::string& line);

/// Categories that the user's rules name, without `all`.
std::set<std::string> categories_of(const AclUser& user);

/// `missing`: the right without which the categories could not be read, or a category that the server does not know;
/// then commands and selectors are unread.
sdk::Record acl_record(const AclUser& user, const AclCategories& categories, const std::string& missing);

/// Verdicts on changes of one acl_user: rules written in other words, and commands that only the server's version
/// brought.
struct AclChange {
  std::uint32_t index;
  std::string_view path;
};
std::vector<std::pair<std::uint32_t, std::string>> equivalent_acl_changes(const std::vector<AclChange>& changes);

}  // namespace driftd::redis
