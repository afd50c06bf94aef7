// SPDX-License-Identifier: Apache-2.0
#include "base/encrypt.hpp"

#include <openssl/evp.h>
#include <openssl/rand.h>
#include <memory>

namespace driftd {
namespace {

constexpr char kVersion = 1;
constexpr int kNonceBytes = 12, kTagBytes = 16;
constexpr std::size_t kHeaderBytes = 1 + kNonceBytes + kTagBytes;
constexpr std::size_t kMaxBytes = 1u << 30;  ///< far below the maximum of OpenSSL's lengths, which are int

using Cipher = std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)>;

unsigned char* bytes_of(std::string& text) { return reinterpret_cast<unsigned char*>(text.data()); }
const unsigned char* bytes_of(std::string_view text) { return reinterpret_cast<const unsigned char*>(text.data()); }
int size_of(std::string_view text) { return static_cast<int>(text.size()); }

}  // namespace

Result<std::string> encrypt(const Key& key, std::string_view associated, std::string_view text) {
  if (text.size() > kMaxBytes || associated.size() > kMaxBytes)
    return fail(Code::invalid, "a text of more than 1 GiB is not encrypted");
  std::string out(kHeaderBytes + text.size(), '\0');
  out[0] = kVersion;
  unsigned char* const nonce = bytes_of(out) + 1;
  unsigned char* const tag = nonce + kNonceBytes;
  unsigned char* const body = tag + kTagBytes;
  const Cipher cipher(EVP_CIPHER_CTX_new(), EVP_CIPHER_CTX_free);
  int size = 0;
  const bool done = cipher && RAND_bytes(nonce, kNonceBytes) == 1 &&
                    EVP_EncryptInit_ex(cipher.get(), EVP_aes_256_gcm(), nullptr, key.data(), nonce) == 1 &&
                    EVP_EncryptUpdate(cipher.get(), nullptr, &size, bytes_of(associated), size_of(associated)) == 1 &&
                    EVP_EncryptUpdate(cipher.get(), body, &size, bytes_of(text), size_of(text)) == 1 &&
                    EVP_EncryptFinal_ex(cipher.get(), body + size, &size) == 1 &&
                    EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_GCM_GET_TAG, kTagBytes, tag) == 1;
  if (!done)
    return fail(
        Code::unavailable,
        "a text could not be encrypted (AES-256-GCM): check that this process may use more memory, and that its "
        "OpenSSL offers AES-GCM");
  return out;
}

std::optional<std::string> decrypt(const Key& key, std::string_view associated, std::string_view bytes) {
  if (bytes.size() < kHeaderBytes || bytes.size() > kMaxBytes || associated.size() > kMaxBytes || bytes[0] != kVersion)
    return std::nullopt;
  std::string tag(bytes.substr(1 + kNonceBytes, kTagBytes));
  const std::string_view body = bytes.substr(kHeaderBytes);
  std::string out(body.size(), '\0');
  const Cipher cipher(EVP_CIPHER_CTX_new(), EVP_CIPHER_CTX_free);
  int size = 0;
  unsigned char none = 0;  // GCM has no last block
  const bool done =
      cipher && EVP_DecryptInit_ex(cipher.get(), EVP_aes_256_gcm(), nullptr, key.data(), bytes_of(bytes) + 1) == 1 &&
      EVP_DecryptUpdate(cipher.get(), nullptr, &size, bytes_of(associated), size_of(associated)) == 1 &&
      EVP_DecryptUpdate(cipher.get(), bytes_of(out), &size, bytes_of(body), size_of(body)) == 1 &&
      EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_GCM_SET_TAG, kTagBytes, tag.data()) == 1 &&
      EVP_DecryptFinal_ex(cipher.get(), &none, &size) == 1;
  if (!done) return std::nullopt;
  return out;
}

}  // namespace driftd
