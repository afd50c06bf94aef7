// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

namespace driftd::config {

/// `500ms`, `30s`, `1h30m`, `7d`; each part a whole number or a decimal with its unit. Nothing: not a duration, or too
/// long for the type.
std::optional<std::chrono::milliseconds> parse_duration(std::string_view text);

/// `512MiB`, `4GiB`, `10MB`, `100B`: 1024s with an i, 1000s without. Nothing: not a size.
std::optional<std::int64_t> parse_bytes(std::string_view text);

inline constexpr std::string_view kDurationForm = "a duration such as 500ms, 30s, 5m, 1h30m, 7d";
inline constexpr std::string_view kBytesForm = "a size such as 512MiB, 4GiB, 10MB";

}  // namespace driftd::config
