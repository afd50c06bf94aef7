// SPDX-License-Identifier: Apache-2.0
// What values mean beside others, for the files of the comparison. No other room includes this.
#pragma once

#include "core/value/schema.hpp"

namespace driftd::core {

/// Returns true if the value holds nothing, at any depth: null, an empty text, lists and objects of such.
bool is_hollow(const Value& value);

/// Returns the elements that the list stands for (`expands`, as `version` reads it), without those that another one
/// covers (`covers`) or that do not count any more (`in_effect`). `budget` if they are too many.
Result<Value::Array> elements_meant(const AttributeRule& rule, const Value::Array& elements, std::size_t version);

/// Returns how a pattern spells the member `name`, which it may write in another case, of the object at `object`. Empty
/// if the pattern is for no such member and for nothing below one.
std::string spelling_of(const Glob& pattern, const Path& object, std::string_view name);

/// Returns what was read from a text, in which an object that looks like a digest is an object like any other: nobody
/// but the agent makes digests, and whoever writes the text would hide a change by one.
Value without_digests_of_text(Value read);

}  // namespace driftd::core
