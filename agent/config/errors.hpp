// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace driftd::config {

/// A position in the config file. Lines and columns count from 1, columns in bytes. Line 0 is the file as a whole.
struct Position {
  int line = 0;
  int column = 0;
  friend bool operator==(const Position&, const Position&) = default;
};

/// One error (in Config::warnings one warning): what, where, expected, found, next step. It never contains a secret.
struct ConfigError {
  std::string file;
  Position at;
  std::string what, expected, found, next;  ///< the last three may be empty
};

/// `driftd.yaml:14:17: what; expected …; found …; next step`.
std::string render(const ConfigError& error);
std::string render(const std::vector<ConfigError>& errors);  ///< one per line, in the order of the file

/// Returns the known name that was probably meant: no more than a third of its letters differ, and a swap of neighbours
/// counts once. Empty if there is none.
std::string nearest(std::string_view word, const std::vector<std::string>& known);

}  // namespace driftd::config
