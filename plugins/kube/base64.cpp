// SPDX-License-Identifier: Apache-2.0
#include "kube/base64.hpp"

#include <zlib.h>

#include "driftd/sdk/types.hpp"

namespace driftd::kube {
namespace {

int digit(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '+') return 62;
  return c == '/' ? 63 : -1;
}

}  // namespace

std::optional<std::string> decode_base64(std::string_view text) {
  std::string out;
  out.reserve(text.size() / 4 * 3);
  std::uint32_t bits = 0;
  int held = 0;
  std::size_t digits = 0, padding = 0;
  for (const char c : text) {
    if (c == '\n' || c == '\r') continue;
    if (c == '=') {
      ++padding;
      continue;
    }
    const int value = digit(c);
    if (value < 0 || padding > 0) return std::nullopt;
    bits = (bits << 6 | static_cast<std::uint32_t>(value)) & 0xffffff;
    ++digits;
    held += 6;
    if (held >= 8) out += static_cast<char>(bits >> (held -= 8) & 0xff);
  }
  const bool sound = digits % 4 != 1 && padding <= 2 && (padding == 0 || (digits + padding) % 4 == 0);
  return sound ? std::optional(std::move(out)) : std::nullopt;
}

std::string gunzip(std::string_view packed, std::size_t max_bytes, const std::string& what) {
  z_stream stream{};
  if (inflateInit2(&stream, 15 + 16) != Z_OK) throw sdk::Failure(DRIFTD_INTERNAL, what + ": no memory to unpack it");
  struct End {
    z_stream* stream;
    ~End() { inflateEnd(stream); }
  } const end{&stream};
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  std::string out;
  char piece[16 << 10];
  while (true) {
    stream.next_out = reinterpret_cast<Bytef*>(piece);
    stream.avail_out = sizeof piece;
    const int state = inflate(&stream, Z_NO_FLUSH);
    if (state != Z_OK && state != Z_STREAM_END) throw sdk::Failure(DRIFTD_CORRUPT, what + ": no whole gzip stream");
    out.append(piece, sizeof piece - stream.avail_out);
    if (out.size() > max_bytes)
      throw sdk::Failure(DRIFTD_BUDGET, what + ": unpacks to more than " + std::to_string(max_bytes) + " bytes");
    if (state == Z_STREAM_END) return out;
    if (stream.avail_in == 0 && stream.avail_out != 0)
      throw sdk::Failure(DRIFTD_CORRUPT, what + ": no whole gzip stream");
  }
}

}  // namespace driftd::kube
