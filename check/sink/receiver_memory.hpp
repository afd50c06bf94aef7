// SPDX-License-Identifier: Apache-2.0
// The memory that a receiver's process fills and the check's process reads.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "check/sink/receiver.hpp"

namespace driftd::check {

/// Bytes that arrived together on one connection.
struct Chunk {
  std::uint32_t connection = 0;
  std::string bytes;
};

/// Chunks one behind the other. One process appends, the other one reads. The pages that nothing was written to use no
/// memory.
struct Receiver::Shared {
  static constexpr std::size_t kCapacity = 256u << 20;
  std::atomic<std::uint64_t> used{0}, arrived{0}, reset_after{0};
  std::atomic<bool> lost{false};  ///< something did not fit in
  char data[kCapacity];

  static Shared* map();
  static void unmap(Shared* shared);
  void append(std::uint32_t connection, const char* bytes, std::size_t size);
  /// Reads the chunk at `at` and returns where the next one begins.
  std::uint64_t read(std::uint64_t at, Chunk& out) const;
};

}  // namespace driftd::check
