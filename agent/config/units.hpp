// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

namespace driftd::config {

/// Parses `500ms`, `30s`, `1h30m`, `7d`. Each part is a whole or decimal number with its unit. Returns nothing if the
/// text is not a duration, or too long for the type.
std::optional<std::chrono::milliseconds> parse_duration(std::string_view text);

/// Parses `512MiB`, `4GiB`, `10MB`, `100B`. Units with an i are powers of 1024, others of 1000. Returns nothing if the
/// text is not a size.
std::optional<std::int64_t> parse_bytes(std::string_view text);

inline constexpr std::string_view kDurationForm = "a duration such as 500ms, 30s, 5m, 1h30m, 7d";
inline constexpr std::string_view kBytesForm = "a size such as 512MiB, 4GiB, 10MB";

}  // namespace driftd::config
