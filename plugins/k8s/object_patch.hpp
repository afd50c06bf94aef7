// SPDX-License-Identifier: Apache-2.0
// A JSON Patch that says no more than what changes. Pure.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "k8s/object_edit.hpp"

namespace driftd::k8s {

/// Returns the JSON Patch (RFC 6902) that makes `wanted` of `now`. An element of a list is recognised by its keys, by
/// its `name` or by being equal, wherever it is: it is removed, added, moved or entered, so that the values of others,
/// which may be secrets, do not occur. (json::diff() compares by position: one element removed before a password
/// writes the password one place further up.)
nlohmann::json patch_between(const nlohmann::json& now, const nlohmann::json& wanted, const ListShape& shape);

/// Returns true if a value of the patch holds one of the texts: is equal to it, or contains it if it is long enough to
/// be recognised.
bool tells(const nlohmann::json& patch, const std::vector<std::string>& secrets);

}  // namespace driftd::k8s
