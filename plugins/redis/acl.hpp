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

/// Commands by category, as ACL CAT answers; subcommands as `config|get`. Without `all`; `slow` and `fast` together
/// hold every command.
using AclCategories = std::map<std::string, std::set<std::string>>;

/// Returns the normal form of command rules: `+@all` or `-@all` (which also decides about commands of future modules),
/// then the sorted deviations from it. A command whose subcommands all deviate stands for them. Two rule texts allow
/// the same exactly if their normal forms are equal.
std::vector<std::string> effective_commands(const std::vector<std::string>& rules, const AclCategories& categories);

/// Sorts the rules by command between two categories: rules about different commands commute, and Redis 7.0 lists them
/// in another order after every start. Rules about one command keep their order, and categories keep their place.
std::string ordered(const std::string& commands);

/// One user as ACL LIST wrote it.
struct AclUser {
  std::string name;
  bool enabled = false;
  std::vector<std::string> flags, passwords, keys, channels, commands;
  std::vector<std::vector<std::string>> selectors;  ///< the rules inside each pair of parentheses
};

/// Throws CORRUPT if the line is not one of ACL LIST.
AclUser parse_acl_line(const std::string& line);

/// Returns the categories that the user's rules name, without `all`.
std::set<std::string> categories_of(const AclUser& user);

/// `missing` is the right without which the categories could not be read, or a category that the server does not know;
/// commands and selectors are then unread.
sdk::Record acl_record(const AclUser& user, const AclCategories& categories, const std::string& missing);

/// A change of an acl_user; equivalent_acl_changes() returns those that only spell the rules differently or that only
/// the server's version brought.
struct AclChange {
  std::uint32_t index;
  std::string_view path;
};
std::vector<std::pair<std::uint32_t, std::string>> equivalent_acl_changes(const std::vector<AclChange>& changes);

}  // namespace driftd::redis
