// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <openssl/evp.h>
#include <memory>

#include "driftd/sdk/types.hpp"

namespace driftd::common {

/// Throws INTERNAL unless OpenSSL succeeded. What it left in the buffer of a digest that it did not compute would be
/// compared as if it were one.
inline void require_digest(bool computed) {
  if (!computed) {
    throw sdk::Failure(DRIFTD_INTERNAL,
                       "OpenSSL computed no SHA-256: check that the worker may use more memory "
                       "(budgets.rss), and that the OpenSSL of this machine offers SHA-256");
  }
}

using DigestContext = std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)>;

/// Begins a SHA-256. Throws as require_digest().
inline DigestContext begin_sha256() {
  DigestContext out(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  require_digest(out && EVP_DigestInit_ex(out.get(), EVP_sha256(), nullptr) == 1);
  return out;
}

}  // namespace driftd::common
