// SPDX-License-Identifier: Apache-2.0
#include "kafka/scram_proof.hpp"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "driftd/sdk/types.hpp"
#include "kafka/scram_wire.hpp"

namespace driftd::kafka {
namespace {

constexpr std::int32_t kMaxIterations = 1'000'000;  // Kafka has at most 16384; a hostile server would keep us computing

void require(bool computed) {
  if (!computed) throw sdk::Failure(DRIFTD_INTERNAL, "OpenSSL computed no SCRAM proof");
}

std::string keyed_digest(const EVP_MD* digest, std::string_view key, std::string_view text) {
  std::string out(EVP_MAX_MD_SIZE, '\0');
  unsigned size = 0;
  require(HMAC(digest, key.data(), static_cast<int>(key.size()), reinterpret_cast<const unsigned char*>(text.data()),
               text.size(), reinterpret_cast<unsigned char*>(out.data()), &size) != nullptr);
  out.resize(size);
  return out;
}

std::string digest_of(const EVP_MD* digest, std::string_view text) {
  std::string out(EVP_MAX_MD_SIZE, '\0');
  unsigned size = 0;
  require(EVP_Digest(text.data(), text.size(), reinterpret_cast<unsigned char*>(out.data()), &size, digest, nullptr) ==
          1);
  out.resize(size);
  return out;
}

std::string base64_of(std::string_view bytes) {
  std::string out(4 * ((bytes.size() + 2) / 3) + 1, '\0');
  const int size =
      EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                      reinterpret_cast<const unsigned char*>(bytes.data()), static_cast<int>(bytes.size()));
  out.resize(static_cast<std::size_t>(size));
  return out;
}

/// `text` is base64 with its padding, as parse_server_first() has checked.
std::string bytes_of_base64(std::string_view text) {
  std::string out(text.size(), '\0');
  const int size = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                                   reinterpret_cast<const unsigned char*>(text.data()), static_cast<int>(text.size()));
  require(size >= 0);
  const std::size_t padding = text.ends_with("==") ? 2u : text.ends_with('=') ? 1u : 0u;
  out.resize(static_cast<std::size_t>(size) - padding);
  return out;
}

std::string salted(const EVP_MD* digest, const std::string& password, const ServerFirst& first) {
  const std::string salt = bytes_of_base64(first.salt);
  std::string out(static_cast<std::size_t>(EVP_MD_get_size(digest)), '\0');
  require(PKCS5_PBKDF2_HMAC(password.data(), static_cast<int>(password.size()),
                            reinterpret_cast<const unsigned char*>(salt.data()), static_cast<int>(salt.size()),
                            first.iterations, digest, static_cast<int>(out.size()),
                            reinterpret_cast<unsigned char*>(out.data())) == 1);
  return out;
}

}  // namespace

ScramProof scram_proof(const std::string& mechanism, const std::string& password, std::string_view client_first,
                       std::string_view server_first, std::string_view nonce) {
  const ServerFirst first = parse_server_first(server_first, nonce);
  if (first.iterations > kMaxIterations) {
    throw sdk::Failure(DRIFTD_CORRUPT, "SCRAM login: the broker asks for " + std::to_string(first.iterations) +
                                           " iterations, at most " + std::to_string(kMaxIterations) + " are done");
  }
  const EVP_MD* digest = mechanism == "SCRAM-SHA-512" ? EVP_sha512() : EVP_sha256();
  std::string key = salted(digest, password, first);
  const std::string whole_nonce(server_first.substr(2, server_first.find(',') - 2));
  const std::string unproved = "c=biws,r=" + whole_nonce;  // biws: `n,,`, no channel binding
  const std::string all = std::string(client_first.substr(3)) + "," + std::string(server_first) + "," + unproved;
  std::string client_key = keyed_digest(digest, key, "Client Key");
  const std::string signature = keyed_digest(digest, digest_of(digest, client_key), all);
  for (std::size_t i = 0; i < client_key.size(); ++i) client_key[i] = static_cast<char>(client_key[i] ^ signature[i]);
  ScramProof out{unproved + ",p=" + base64_of(client_key),
                 "v=" + base64_of(keyed_digest(digest, keyed_digest(digest, key, "Server Key"), all))};
  OPENSSL_cleanse(key.data(), key.size());
  return out;
}

}  // namespace driftd::kafka
