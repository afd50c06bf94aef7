// SPDX-License-Identifier: Apache-2.0
// Integers on the wire, for wire.cpp and wire_fields.cpp.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace driftd::ipc {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "agent and worker are of one machine: its order is the wire's");

/// Appends the low `bytes` bytes of `value`, 1 to 8.
inline void put_le(std::string& out, std::uint64_t value, int bytes) {
  out.append(reinterpret_cast<const char*>(&value), static_cast<std::size_t>(bytes));
}

/// Returns the number in the first `bytes` bytes of `in`, which must have that many: 1 to 8.
/// The caller checks the size, because both have another answer to a short text.
inline std::uint64_t get_le(std::string_view in, int bytes) {
  std::uint64_t value = 0;
  std::memcpy(&value, in.data(), static_cast<std::size_t>(bytes));
  return value;
}

}  // namespace driftd::ipc
