// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "terraform/settings.hpp"
#include "terraform/state.hpp"

namespace driftd::terraform {

/// Returns true for attribute names that hold secrets whatever the state marks: password, token, private_key …
bool secret_name(std::string_view attribute);

/// Returns the secret paths of an instance: those that the state marks, that are known for its type, whose name
/// suggests it, and that the settings add. A state marks only what its configuration marked
/// (hashicorp/terraform#25646).
std::vector<std::string> secret_paths(const Instance& instance, const Settings& settings);

/// Appends a member to an attribute path: `a.b`, `a["b.c"]`.
std::string child_path(const std::string& path, const std::string& member);

}  // namespace driftd::terraform
