// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace driftd {

/// scrypt (RFC 7914) with N = 2^14, r = 8, p = 1: about 50 ms and 16 MiB each; 32 raw bytes. `unavailable`: the memory
/// cannot be had now, or this OpenSSL offers no scrypt.
Result<std::string> slow_hash(std::string_view text, std::string_view salt);

}  // namespace driftd
