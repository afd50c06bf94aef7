// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "core/value/attribute_rule.hpp"

namespace driftd::core {

/// Returns what would make two different values equal, for the author of a schema: `the same members in another order:
/// "collection": "set"`. Also says if one of them is not of its type. Empty if there is nothing to say. Holds no part
/// of the values.
std::string hint(const AttributeRule& rule, const Value& before, const Value& after);

}  // namespace driftd::core
