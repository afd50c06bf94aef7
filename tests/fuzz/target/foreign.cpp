// SPDX-License-Identifier: Apache-2.0
// libFuzzer's entry to one parser of foreign data (`make fuzz`). It calls the function that the corpus test replays.
#include <cstdint>

#include "fuzz/foreign/foreign.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const driftd::fuzz::Target* target = driftd::fuzz::find_target(DRIFTD_FUZZ_TARGET);
  target->read({reinterpret_cast<const char*>(data), size});
  return 0;
}
