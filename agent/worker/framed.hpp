// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>

namespace driftd::worker {

/// A struct that a plugin fills in, with a strip behind it that it must not touch.
template <class T>
struct Framed {
  T value{};
  std::array<unsigned char, 64> behind;
  Framed() {
    value.size = sizeof value;
    behind.fill(0xa5);
  }
  bool intact() const {
    return std::all_of(behind.begin(), behind.end(), [](unsigned char byte) { return byte == 0xa5; });
  }
};

}  // namespace driftd::worker
