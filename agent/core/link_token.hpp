// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace driftd::core {

inline constexpr std::size_t kLinkTokenBytes = 20;  ///< random; written as hex

/// Returns the hash under which the store knows the token of a link, in hex. Empty if this cannot be a token.
std::string link_hash(std::string_view token);

}  // namespace driftd::core
