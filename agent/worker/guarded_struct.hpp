// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>

namespace driftd::worker {

/// A struct that a plugin fills in, followed by bytes that it must not touch.
template <class T>
struct GuardedStruct {
  T value{};
  std::array<unsigned char, 64> guard_bytes;
  GuardedStruct() {
    value.size = sizeof value;
    guard_bytes.fill(0xa5);
  }
  bool intact() const {
    return std::all_of(guard_bytes.begin(), guard_bytes.end(), [](unsigned char byte) { return byte == 0xa5; });
  }
};

}  // namespace driftd::worker
