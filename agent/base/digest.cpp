// SPDX-License-Identifier: Apache-2.0
#include "base/digest.hpp"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>
#define XXH_INLINE_ALL  // inlined, because for short records a call would cost as much as the hash
#include <xxhash.h>

#include <array>
#include <cstring>
#include <new>

namespace driftd {
namespace {

/// Appends the part behind its size: 8 bytes, little endian.
void append_length_prefixed(std::string& out, std::string_view part) {
  const std::uint64_t size = part.size();
  for (int shift = 0; shift < 64; shift += 8) out.push_back(static_cast<char>(size >> shift & 0xff));
  out.append(part);
}

constexpr std::uint32_t kCastagnoli = 0x82F63B78;  // the polynomial of CRC-32C, lowest bit first

constexpr std::array<std::uint32_t, 256> make_crc_table() {
  std::array<std::uint32_t, 256> out{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? kCastagnoli : 0);
    out[byte] = crc;
  }
  return out;
}

constexpr auto kCrcTable = make_crc_table();

constexpr std::uint32_t crc_by_table(std::string_view bytes, std::uint32_t crc) {
  for (const char c : bytes) crc = crc >> 8 ^ kCrcTable[(crc ^ static_cast<unsigned char>(c)) & 0xff];
  return crc;
}
static_assert(~crc_by_table("123456789", ~0u) == 0xE3069283, "RFC 3720's check value");

#ifdef __x86_64__
__attribute__((target("sse4.2"))) std::uint32_t crc_by_cpu(std::string_view bytes, std::uint32_t crc) {
  std::uint64_t wide = crc;
  for (; bytes.size() >= sizeof wide; bytes.remove_prefix(sizeof wide)) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), sizeof word);
    wide = __builtin_ia32_crc32di(wide, word);
  }
  crc = static_cast<std::uint32_t>(wide);
  for (const char c : bytes) crc = __builtin_ia32_crc32qi(crc, static_cast<unsigned char>(c));
  return crc;
}
#endif

const unsigned char* bytes_of(std::string_view text) { return reinterpret_cast<const unsigned char*>(text.data()); }

}  // namespace

DigestBuilder::DigestBuilder(std::uint64_t seed) {
  static_assert(sizeof(XXH3_state_t) <= sizeof state_ && alignof(XXH3_state_t) <= 64);
  auto* state = new (state_.data()) XXH3_state_t;
  XXH3_INITSTATE(state);
  XXH3_128bits_reset_withSeed(state, seed);
}

void DigestBuilder::add(std::string_view part) {
  auto* state = reinterpret_cast<XXH3_state_t*>(state_.data());
  const std::uint64_t size = part.size();
  XXH3_128bits_update(state, &size, sizeof size);
  XXH3_128bits_update(state, part.data(), part.size());
}

void DigestBuilder::add(std::uint64_t number) { add({reinterpret_cast<const char*>(&number), sizeof number}); }

Digest DigestBuilder::finish() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(reinterpret_cast<const XXH3_state_t*>(state_.data()));
  return {hash.low64, hash.high64};
}

Digest digest(std::uint64_t seed, std::initializer_list<std::string_view> parts) {
  DigestBuilder out(seed);
  for (const auto part : parts) out.add(part);
  return out.finish();
}

std::string hmac_raw(std::string_view key, std::string_view bytes) {
  unsigned char out[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), bytes_of(bytes), bytes.size(), out, &size);
  return {reinterpret_cast<const char*>(out), size};
}

std::string hmac_hex(const Key& key, std::initializer_list<std::string_view> parts) {
  std::string message;
  for (const auto part : parts) append_length_prefixed(message, part);
  return to_hex(hmac_raw({reinterpret_cast<const char*>(key.data()), key.size()}, message));
}

std::string sha1(std::string_view bytes) {
  unsigned char out[SHA_DIGEST_LENGTH];
  SHA1(bytes_of(bytes), bytes.size(), out);
  return {reinterpret_cast<const char*>(out), sizeof out};
}

std::string sha256(std::string_view bytes) {
  unsigned char out[SHA256_DIGEST_LENGTH];
  SHA256(bytes_of(bytes), bytes.size(), out);
  return {reinterpret_cast<const char*>(out), sizeof out};
}

std::uint32_t crc32c(std::string_view bytes, std::uint32_t before) {
#ifdef __x86_64__
  static const bool hardware = __builtin_cpu_supports("sse4.2") != 0;
  if (hardware) return ~crc_by_cpu(bytes, ~before);
#endif
  return ~crc_by_table(bytes, ~before);
}

std::string to_hex(std::string_view bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  out.reserve(bytes.size() * 2);
  for (const char c : bytes) {
    out.push_back(kDigits[static_cast<unsigned char>(c) >> 4]);
    out.push_back(kDigits[static_cast<unsigned char>(c) & 15]);
  }
  return out;
}

std::string base64(std::string_view bytes) {
  std::string out(4 * ((bytes.size() + 2) / 3), '\0');
  const int size =
      EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()), bytes_of(bytes), static_cast<int>(bytes.size()));
  out.resize(static_cast<std::size_t>(size));
  return out;
}

}  // namespace driftd
