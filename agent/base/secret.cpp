// SPDX-License-Identifier: Apache-2.0
#include "base/secret.hpp"

#include <openssl/crypto.h>

namespace driftd {

void wipe(std::string& text) {
  OPENSSL_cleanse(text.data(), text.size());
  text.clear();
}

Secret::Secret(std::string&& text) : bytes_(text.begin(), text.end()) { wipe(text); }
Secret::~Secret() { OPENSSL_cleanse(bytes_.data(), bytes_.size()); }

bool operator==(const Secret& a, const Secret& b) {
  return a.bytes_.size() == b.bytes_.size() && CRYPTO_memcmp(a.bytes_.data(), b.bytes_.data(), a.bytes_.size()) == 0;
}

}  // namespace driftd
