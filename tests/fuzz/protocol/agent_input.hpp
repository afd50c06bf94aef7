// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace driftd::fuzz {

/// Handles bytes of a worker as the agent's end does, without a socket. If the first byte is even, the rest is a byte
/// stream. If it is odd, the second byte selects a frame type and the rest is the payload of a frame with a correct
/// checksum. Must neither crash nor throw.
void feed_agent(std::string_view input);

}  // namespace driftd::fuzz
