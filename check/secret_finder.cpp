// SPDX-License-Identifier: Apache-2.0
#include "check/secret_finder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/digest.hpp"
#include "core/value/value.hpp"

namespace driftd::check {
namespace {

constexpr std::size_t kMinBytes = 8;

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

std::string url_encoded(const std::string& bytes, bool high) {
  std::string out;
  for (const unsigned char c : bytes) {
    const bool plain = std::isalnum(c) || c == '-' || c == '_' || c == '.' || c == '~';
    out += plain ? std::string(1, static_cast<char>(c)) : high ? fmt::format("%{:02X}", c) : fmt::format("%{:02x}", c);
  }
  return out;
}

/// Returns the part of the base64 text that does not depend on the bytes around the secret.
std::string base64_core(const std::string& secret, std::size_t offset) {
  static constexpr std::size_t kSkip[] = {0, 2, 3};
  const std::string text = base64(std::string(offset, 'x') + secret);
  const std::size_t whole = (offset + secret.size()) / 3 * 4;
  return whole > kSkip[offset] ? text.substr(kSkip[offset], whole - kSkip[offset]) : std::string();
}

std::string url_safe(std::string text) {
  std::replace(text.begin(), text.end(), '+', '-');
  std::replace(text.begin(), text.end(), '/', '_');
  return text;
}

}  // namespace

SecretFinder::SecretFinder(const std::map<std::string, std::string>& secrets, const std::string& public_text) {
  for (const auto& [token, secret] : secrets) {
    if (secret.size() < kMinBytes || public_text.find(secret) != std::string::npos) continue;
    const std::string json = core::render(core::Value(secret));
    forms_.emplace_back(secret, "plain");
    forms_.emplace_back(json.substr(1, json.size() - 2), "JSON-escaped");
    forms_.emplace_back(to_hex(secret), "in hex");
    forms_.emplace_back(upper(to_hex(secret)), "in hex");
    forms_.emplace_back(url_encoded(secret, true), "URL-encoded");
    forms_.emplace_back(url_encoded(secret, false), "URL-encoded");
    for (std::size_t offset = 0; offset < 3; ++offset) {
      const std::string core = base64_core(secret, offset);
      if (core.size() < kMinBytes) continue;
      forms_.emplace_back(core, "in base64");
      forms_.emplace_back(url_safe(core), "in base64");
    }
  }
}

std::string SecretFinder::find(const std::string& text) const {
  for (const auto& [form, name] : forms_) {
    if (text.find(form) != std::string::npos) return name;
  }
  return {};
}

}  // namespace driftd::check
