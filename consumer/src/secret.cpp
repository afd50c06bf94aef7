// SPDX-License-Identifier: Apache-2.0
#include "driftd/consumer/secret.hpp"

#include <openssl/crypto.h>

namespace driftd::consumer {

// A text is always copied, never moved: the memory of a moved std::string may keep its bytes.
Secret::Secret(std::string text) : text_(text) { OPENSSL_cleanse(text.data(), text.size()); }
Secret& Secret::operator=(const Secret& other) {
  if (this == &other) return *this;
  wipe();
  text_ = other.text_;
  return *this;
}
Secret::Secret(Secret&& other) noexcept : text_(other.text_) { other.wipe(); }
Secret& Secret::operator=(Secret&& other) noexcept {
  if (this == &other) return *this;
  *this = static_cast<const Secret&>(other);
  other.wipe();
  return *this;
}
Secret::~Secret() { wipe(); }

void Secret::wipe() {
  OPENSSL_cleanse(text_.data(), text_.size());
  text_.clear();
}

bool operator==(const Secret& a, const Secret& b) {
  return a.text_.size() == b.text_.size() && CRYPTO_memcmp(a.text_.data(), b.text_.data(), a.text_.size()) == 0;
}

}  // namespace driftd::consumer
