// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "terraform/spool.hpp"

namespace driftd::terraform {

// Trees of the parts of a state that need one. Numbers that are not 64-bit integers are marked strings, and what nests
// too deep is replaced by a mark.

/// Parses a text that a walk accepted. What nests deeper than `deepest` levels is replaced by a mark, see
/// remove_deep_members(). Throws BUDGET above 1,000,000 values.
nlohmann::json parse_tree(std::string_view text, int deepest);
/// Parses the whole document; for older formats. Throws BUDGET above 64 MiB or 2,000,000 values.
nlohmann::json parse_whole(const Spool& state);
/// Renders a tree as it was in the document: every number keeps its own digits.
std::string render(const nlohmann::json& value);
/// Returns true if the text of a rendered tree may hold the mark of something that nests too deep.
bool may_hold_mark(std::string_view rendered);
/// Removes the members of an object that nest too deep and returns their names. `rendered` is the object as text.
std::vector<std::string> remove_deep_members(nlohmann::json& object, const std::string& rendered);
/// Returns the digits of a number or the text of a string as in the document; empty for anything else.
std::string scalar_text(const nlohmann::json& value);

}  // namespace driftd::terraform
