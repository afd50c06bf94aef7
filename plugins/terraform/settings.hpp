// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "driftd/sdk/scope.hpp"

namespace driftd::terraform {

/// Settings of one instance, as in schema.json. Immutable.
struct Settings {
  std::string path;                           ///< of the state file
  sdk::Scope scope;
  std::vector<std::string> sensitive;         ///< globs over attribute names that are secret beside the well-known ones
};

/// From the JSON that open() gets. Throws sdk::Failure INVALID with the setting's name.
Settings parse_settings(std::string_view json);

}  // namespace driftd::terraform
