// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace driftd::sinks {

/// Returns the key bytes of a configured secret: `whsec_<base64>` decoded, anything else unchanged. Returns `invalid`
/// (without the secret) if the base64 is invalid or the key is shorter than 16 bytes.
Result<std::string> signing_key(std::string_view secret);

/// Returns the value of `webhook-signature`: `v1,<base64 HMAC-SHA256(id.timestamp.body)>` for each key, separated by
/// spaces.
std::string sign(const std::vector<std::string>& keys, std::string_view id, std::int64_t timestamp,
                 std::string_view body);

}  // namespace driftd::sinks
