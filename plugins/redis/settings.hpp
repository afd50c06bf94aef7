// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace driftd::redis {

/// Settings of one instance, as in schema.json. Immutable.
struct Settings {
  std::string host = "127.0.0.1";
  int port = 6379;
  std::string socket;  ///< path of a Unix socket; then host and port are unused
  std::string username, password_token;
  std::chrono::milliseconds connect{5000}, call{20'000};
  std::vector<std::string> include, exclude;  ///< globs over `kind/id`; no include: everything

  bool wants(std::string_view kind, std::string_view id) const;
  /// False when nothing of this kind can be in scope.
  bool wants_kind(std::string_view kind) const;
  /// Changes whenever the scope does: a cursor of another scope is worth nothing.
  std::string scope() const;
};

/// From the JSON that open() gets. Throws sdk::Failure INVALID with the setting's name.
Settings parse_settings(std::string_view json);

/// `*` is any run of characters, all else is literal.
bool glob_match(std::string_view glob, std::string_view text);

}  // namespace driftd::redis
