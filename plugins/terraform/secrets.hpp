// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "terraform/settings.hpp"
#include "terraform/state.hpp"

namespace driftd::terraform {

/// Attribute names that hold secrets whatever the state says: password, token, private_key …
bool secret_name(std::string_view attribute);

/// Paths of an instance's attributes that are secret: what the state marks, what the type is known to hold, what a name
/// says, what the settings add. A state marks only what its configuration marked (hashicorp/terraform#25646).
std::vector<std::string> secret_paths(const Instance& instance, const Settings& settings);

/// `path` with one member more, as attribute paths are written: `a.b`, `a["b.c"]`.
std::string child_path(const std::string& path, const std::string& member);

}  // namespace driftd::terraform
