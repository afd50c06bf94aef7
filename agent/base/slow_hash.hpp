// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace driftd {

/// Returns the scrypt hash (RFC 7914) with N = 2^14, r = 8, p = 1: 32 raw bytes, for about 50 ms and 16 MiB. Returns
/// `unavailable` if the memory is not available now or this OpenSSL has no scrypt.
/// It blocks that long, so never call it on the core thread.
Result<std::string> slow_hash(std::string_view text, std::string_view salt);

}  // namespace driftd
