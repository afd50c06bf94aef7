// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace driftd {

/// A moment of any year from 0 to 9999; nanoseconds alone reach from 1678 to 2261.
struct Instant {
  std::int64_t seconds = 0;  ///< since the Unix epoch
  std::int64_t nanos = 0;    ///< 0 to 999,999,999
};

/// RFC 3339 with its zone, `2026-11-21T03:39:16.123Z`; also with a blank for the T and `+0200`, `+02`, as PostgreSQL
/// prints it. Nothing: another form, no such day, more than nine places of a second that are not 0.
std::optional<Instant> parse_instant(std::string_view text);

}  // namespace driftd
