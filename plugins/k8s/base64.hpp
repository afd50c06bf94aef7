// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace driftd::k8s {

/// RFC 4648 §4, line ends passed over, padding optional; nothing when it is not that.
std::optional<std::string> decode_base64(std::string_view text);

/// What a gzip stream unpacks to, at max_bytes `max_bytes` bytes. CORRUPT, BUDGET; `what` begins the text.
std::string gunzip(std::string_view packed, std::size_t max_bytes, const std::string& what);

bool is_utf8(std::string_view text);

}  // namespace driftd::k8s
