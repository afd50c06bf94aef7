// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace driftd {

/// escaped() for a JSON text, which remains valid JSON with the same values: DEL, C1 controls and direction marks,
/// which JSON allows unescaped, become `\u009b` or `\u202e`. [any thread]
std::string escaped_json(std::string_view json);

}  // namespace driftd
