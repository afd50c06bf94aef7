// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace driftd::terraform {

/// Settings of one instance, as in schema.json. Immutable.
struct Settings {
  std::string path;                           ///< of the state file
  std::vector<std::string> include, exclude;  ///< globs over `kind/id`; no include: everything
  std::vector<std::string> sensitive;         ///< globs over attribute names that are secret beside the well-known ones

  bool wants(std::string_view kind, std::string_view id) const;
};

/// From the JSON that open() gets. Throws sdk::Failure INVALID with the setting's name.
Settings parse_settings(std::string_view json);

/// `*` is any run of characters, all else is literal.
bool glob_match(std::string_view glob, std::string_view text);

}  // namespace driftd::terraform
