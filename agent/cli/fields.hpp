// SPDX-License-Identifier: Apache-2.0
// Reads the agent's JSON answers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/value/value.hpp"

namespace driftd::cli {

/// Returns a member, or null if there is none.
core::Value member(const core::Value& object, std::string_view name);
/// Returns a member as text: strings as they are, null and missing members as empty text, everything else as JSON.
std::string text(const core::Value& object, std::string_view name);
std::string text(const core::Value& value);
bool flag(const core::Value& object, std::string_view name);            ///< false if it is missing or not a flag
std::int64_t number(const core::Value& object, std::string_view name);  ///< 0 if it is missing or is not a number
/// Returns the items of a member. Empty if it is not a list.
core::Value::Array list(const core::Value& object, std::string_view name);
/// `a, b, c`
std::string join(const core::Value::Array& texts);
/// `2026-11-21T03:39:16.123Z` → `2026-11-21 03:39:16`; empty: `never`.
std::string when(const std::string& time);

/// The old and the new value of a change as JSON, or `(absent)`.
struct Sides {
  std::string before, now;  ///< `(absent)` where there is none
};
/// Returns true if the agent shows only part of this member. The member is then a string: the beginning of its JSON.
bool is_cut(const core::Value& shown, std::string_view name);
/// Takes `old` and `new` of a change as the API shows it.
Sides read_sides(const core::Value& change);
/// Returns the values, long ones cut around their first difference.
Sides shorten(const Sides& whole);

/// Returns canonical JSON that is safe on a terminal: control characters are written as \u escapes.
std::string json_text(const core::Value& value);

}  // namespace driftd::cli
