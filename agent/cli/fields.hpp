// SPDX-License-Identifier: Apache-2.0
// Reading the agent's answers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/value/value.hpp"

namespace driftd::cli {

/// A member, or null.
core::Value member(const core::Value& object, std::string_view name);
/// Its text: strings as they are, null and absent as nothing, all else as JSON.
std::string text(const core::Value& object, std::string_view name);
std::string text(const core::Value& value);
bool flag(const core::Value& object, std::string_view name);
std::int64_t number(const core::Value& object, std::string_view name);
/// The items of a member that is a list; none otherwise.
core::Value::Array list(const core::Value& object, std::string_view name);
/// `a, b, c`
std::string join(const core::Value::Array& texts);
/// `2026-11-21T03:39:16.123Z` → `2026-11-21 03:39:16`; empty: `never`.
std::string when(const std::string& time);

/// Both values of a change as JSON, `(absent)` where there is none.
struct Sides {
  std::string before, now;
};
/// Whether the agent shows only a part of this member: it is then the text of its JSON, not the value.
bool is_cut(const core::Value& shown, std::string_view name);
Sides read_sides(const core::Value& change);
/// The same, long ones cut around the first difference.
Sides shorten(const Sides& whole);

/// Canonical JSON for a reader that may be a terminal: what it would obey is written as \u escapes.
std::string json_text(const core::Value& value);

}  // namespace driftd::cli
