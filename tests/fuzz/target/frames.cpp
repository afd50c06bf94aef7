// SPDX-License-Identifier: Apache-2.0
// libFuzzer's entry to the agent's end of the protocol (`make fuzz`). It calls the function that the corpus test
// replays.
#include <cstddef>
#include <cstdint>

#include "fuzz/protocol/agent_input.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  driftd::fuzz::feed_agent({reinterpret_cast<const char*>(data), size});
  return 0;
}
