// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace driftd::rpc {

/// Where a stream continues. Subscribers see it as opaque text.
struct ResumeToken {
  std::uint64_t incarnation = 0;  ///< of the store that gave it
  std::int64_t seq = 0;           ///< the last event that the subscriber has dealt with, or that did not match
  friend bool operator==(const ResumeToken&, const ResumeToken&) = default;
};

/// Returns `1.<incarnation>.<seq>.<CRC-32C>` in hex, of at most 44 bytes.
std::string render(const ResumeToken& token);
/// Returns `invalid` with the next step for any other text, such as a token that was cut off.
Result<ResumeToken> parse_token(std::string_view text);

}  // namespace driftd::rpc
