// SPDX-License-Identifier: Apache-2.0
#include "base/slow_hash.hpp"

#include <openssl/err.h>
#include <openssl/evp.h>

namespace driftd {
namespace {

constexpr std::uint64_t kN = 1u << 14, kR = 8, kP = 1;  // the parameters N, r and p of RFC 7914
// scrypt needs 128 * N * r = 16 MiB; OpenSSL refuses parameters that need more bytes than this
constexpr std::uint64_t kMaxMemory = 32u << 20;

/// Returns the reason of OpenSSL's newest error and clears it.
std::string newest_reason() {
  const char* reason = ERR_reason_error_string(ERR_peek_last_error());
  ERR_clear_error();
  return reason == nullptr ? "no reason given" : reason;
}

}  // namespace

Result<std::string> slow_hash(std::string_view text, std::string_view salt) {
  unsigned char out[32];
  const int done = EVP_PBE_scrypt(text.data(), text.size(), reinterpret_cast<const unsigned char*>(salt.data()),
                                  salt.size(), kN, kR, kP, kMaxMemory, out, sizeof out);
  if (done == 1) return std::string(reinterpret_cast<const char*>(out), sizeof out);
  return fail(Code::unavailable,
              "a slow digest (scrypt, 16 MiB) could not be computed: " + newest_reason() +
                  "; check that this process may use more memory, and that its OpenSSL offers scrypt");
}

}  // namespace driftd
