// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace driftd::kube {

/// Decodes base64 (RFC 4648 §4); line ends are ignored and padding is optional. Returns nullopt if the text is not
/// valid base64.
std::optional<std::string> decode_base64(std::string_view text);

/// Unpacks a gzip stream to at most `max_bytes` bytes. Throws CORRUPT or BUDGET; `what` begins the error text.
std::string gunzip(std::string_view packed, std::size_t max_bytes, const std::string& what);

}  // namespace driftd::kube
