// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/clock.hpp"

namespace driftd {

/// A moment in the years 0 to 9999. Nanoseconds in 64 bits only reach from 1678 to 2261.
struct Instant {
  std::int64_t seconds = 0;  ///< since the Unix epoch
  std::int64_t nanos = 0;    ///< 0 to 999,999,999
};

/// Parses RFC 3339 with its zone, `2026-11-21T03:39:16.123Z`, also with a space for the T and with `+0200` or `+02`, as
/// PostgreSQL prints it. Empty if the text has another form, if the day does not exist, or if the second has more than
/// nine decimal places that are not 0.
std::optional<Instant> parse_instant(std::string_view text);

/// The same in nanoseconds. Empty also for a moment that they do not reach.
std::optional<Nanos> parse_nanos(std::string_view text);

}  // namespace driftd
