// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace driftd::config {

/// A place in the config file; both count from 1, columns in bytes. 0: the file as a whole.
struct Position {
  int line = 0;
  int column = 0;
  friend bool operator==(const Position&, const Position&) = default;
};

/// One mistake (or, in Config::warnings, one worry): what, where, expected, found, next step. Never holds a secret.
struct ConfigError {
  std::string file;
  Position at;
  std::string what, expected, found, next;  ///< the last three may be empty
};

/// `driftd.yaml:14:17: what; expected …; found …; next step`.
std::string render(const ConfigError& error);
std::string render(const std::vector<ConfigError>& errors);  ///< one a line, in the order of the file

/// The name that was probably meant: at most a third of its letters differ (a swap of neighbours is one); or empty.
std::string nearest(std::string_view word, const std::vector<std::string>& known);

}  // namespace driftd::config
