// SPDX-License-Identifier: Apache-2.0
#include "kafka/digest.hpp"

namespace driftd::kafka {

Digest::Digest(const std::string& scope) { put(scope); }

void Digest::put(const std::string& part) {
  const std::uint64_t size = part.size();
  common::require_digest(EVP_DigestUpdate(context_.get(), &size, sizeof size) == 1 &&
                         EVP_DigestUpdate(context_.get(), part.data(), part.size()) == 1);
}

void Digest::add(const sdk::Record& record) {
  for (const auto* part : {&record.kind, &record.id, &record.external_name, &record.body, &record.status}) put(*part);
  for (const auto& unread : record.unread) put(unread.path);
  put(std::string());
}

std::string Digest::text() {
  unsigned char bytes[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  common::require_digest(EVP_DigestFinal_ex(context_.get(), bytes, &size) == 1);
  std::string out;
  constexpr char kHex[] = "0123456789abcdef";
  for (unsigned i = 0; i < size; ++i) {
    out.push_back(kHex[bytes[i] >> 4]);
    out.push_back(kHex[bytes[i] & 15]);
  }
  return out;
}

}  // namespace driftd::kafka
