// SPDX-License-Identifier: Apache-2.0
#include "ipc/wire_fields.hpp"

#include "ipc/little_endian.hpp"

namespace driftd::ipc {

void Encoder::raw(std::uint64_t value, int bytes) { put_le(out_, value, bytes); }

void Encoder::text(std::string_view value) {
  raw(value.size(), 4);
  out_ += value;
}

std::uint64_t Decoder::raw(int bytes) {
  ok_ = ok_ && in_.size() >= static_cast<std::size_t>(bytes);
  if (!ok_) return 0;
  const std::uint64_t value = get_le(in_, bytes);
  in_.remove_prefix(static_cast<std::size_t>(bytes));
  return value;
}

std::size_t Decoder::count() {
  const std::size_t n = raw(4);
  ok_ = ok_ && n <= in_.size() && n <= max_items_;  // each element takes at least one byte
  return ok_ ? n : 0;
}

std::string Decoder::text() {
  std::size_t n = raw(4);
  ok_ = ok_ && n <= in_.size();
  n = ok_ ? n : 0;
  std::string out(in_.substr(0, n));
  in_.remove_prefix(n);
  return out;
}

}  // namespace driftd::ipc
