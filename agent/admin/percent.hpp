// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace driftd::admin {

/// Decodes `%41`, and `+` as a space if that is what it means there (queries and forms). Returns `invalid` for an
/// escape that is malformed.
Result<std::string> percent_decoded(std::string_view text, bool plus_is_space);

}  // namespace driftd::admin
