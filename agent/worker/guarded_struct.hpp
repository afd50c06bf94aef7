// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>

namespace driftd::worker {

/// A struct that a plugin fills in, followed by bytes that it must not touch. `size` tells the plugin how much of the
/// struct there is; one that was built with a longer struct and ignores it would overwrite our stack.
template <class T>
struct GuardedStruct {
  T value{};  ///< zeroed, with its size set
  std::array<unsigned char, 64> guard_bytes;
  GuardedStruct() {
    value.size = sizeof value;
    guard_bytes.fill(0xa5);
  }
  /// Returns false if the plugin wrote behind the struct, as far as the guard bytes show.
  bool intact() const {
    return std::all_of(guard_bytes.begin(), guard_bytes.end(), [](unsigned char byte) { return byte == 0xa5; });
  }
};

}  // namespace driftd::worker
