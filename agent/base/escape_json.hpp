// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace driftd {

/// escaped() for a JSON text, which stays one that says the same: DEL, C1 controls and marks of direction, that JSON
/// may hold as they are, become `\u009b`, `\u202e`. [any thread]
std::string escaped_json(std::string_view json);

}  // namespace driftd
