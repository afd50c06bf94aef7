// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "core/judge/normal_forms.hpp"

namespace driftd::core {

/// `rule` is that of `path`. Returns why a number may differ: it only grew (`at_least`), or it is between its bounds,
/// some of which `owner` may have, the object of the later value. If another member decides how it is read, it must say
/// the same in both objects, unless the earlier one lacks it. Empty if it may not. nullptr is an absent value.
std::string within_bounds(const Forms& forms, const KindSchema& schema, const Path& path, const AttributeRule& rule,
                          const Value* before, const Value* after, const Value* owner_before, const Value* owner);

}  // namespace driftd::core
