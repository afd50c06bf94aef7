// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace driftd::fuzz {

/// What the agent's end does with bytes of a worker, without its socket. The first byte: even, a byte stream; odd, the
/// payload of a frame whose checksum is right, its type in the second byte. Must neither crash nor throw.
void feed_agent(std::string_view input);

}  // namespace driftd::fuzz
