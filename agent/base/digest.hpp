// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace driftd {

/// 128 bits of XXH3, to compare texts. Never for secrets.
struct Digest {
  std::uint64_t low = 0;  ///< the lower half
  std::uint64_t high = 0;
  friend bool operator==(const Digest&, const Digest&) = default;
};

/// XXH3-128 over the parts, each prefixed by its length. Each installation has its own `seed`, so that nobody can
/// prepare two texts with one digest.
Digest digest(std::uint64_t seed, std::initializer_list<std::string_view> parts);

/// digest() over parts that are not at hand together. One digest, one thread.
class DigestBuilder {
 public:
  explicit DigestBuilder(std::uint64_t seed);
  void add(std::string_view part);  ///< as one part: prefixed by its length
  void add(std::uint64_t number);   ///< as a part of 8 bytes
  Digest finish() const;

 private:
  alignas(64) std::array<unsigned char, 576> state_;  ///< of XXH3
};

using Key = std::array<std::uint8_t, 32>;  ///< key material of HMAC-SHA-256

/// HMAC-SHA-256 over the parts, each prefixed by its length (8 bytes, little endian); 64 hex characters.
std::string hmac_hex(const Key& key, std::initializer_list<std::string_view> parts);
/// HMAC-SHA-256 over the bytes as they are; 32 raw bytes (webhook signatures).
std::string hmac_raw(std::string_view key, std::string_view bytes);
/// SHA-1; 20 raw bytes. Not for integrity: for formats that have it (Terraform states).
std::string sha1(std::string_view bytes);
/// SHA-256; 32 raw bytes.
std::string sha256(std::string_view bytes);  ///< not for passwords: see slow_hash()
/// CRC-32C (Castagnoli) as in RFC 3720; `before` is the CRC of the preceding bytes.
std::uint32_t crc32c(std::string_view bytes, std::uint32_t before = 0);

std::string to_hex(std::string_view bytes);  ///< lower case
std::string base64(std::string_view bytes);  ///< RFC 4648 with padding

}  // namespace driftd
