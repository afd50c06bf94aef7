// SPDX-License-Identifier: Apache-2.0
#include "sinks/webhook/sign.hpp"

#include "base/digest.hpp"

namespace driftd::sinks {
namespace {

constexpr std::string_view kPrefix = "whsec_";
constexpr std::size_t kMinKeyBytes = 16;
constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Decodes base64 with or without padding.
Result<std::string> decode_base64(std::string_view text) {
  while (!text.empty() && text.back() == '=') text.remove_suffix(1);
  std::string out;
  unsigned buffer = 0;
  int bits = 0;
  for (const char ch : text) {
    const auto value = kAlphabet.find(ch);
    if (value == std::string_view::npos) {
      return fail(Code::invalid,
                  "webhook secret: what follows whsec_ is not valid base64; expected letters, digits, + and /");
    }
    buffer = (buffer << 6 | static_cast<unsigned>(value)) & 0xffffff;
    bits += 6;
    if (bits >= 8) out += static_cast<char>(buffer >> (bits -= 8) & 0xff);
  }
  return out;
}

}  // namespace

Result<std::string> signing_key(std::string_view secret) {
  std::string key(secret);
  if (secret.substr(0, kPrefix.size()) == kPrefix) {
    DRIFTD_TRY(key, decode_base64(secret.substr(kPrefix.size())));
  }
  if (key.size() < kMinKeyBytes) {
    return fail(Code::invalid,
                "webhook secret: " + std::to_string(key.size()) + " bytes; expected at least 16 (24 to 64 are usual)");
  }
  return key;
}

std::string sign(const std::vector<std::string>& keys, std::string_view id, std::int64_t timestamp,
                 std::string_view body) {
  std::string text(id);
  text += "." + std::to_string(timestamp) + ".";
  text += body;
  std::string out;
  for (const auto& key : keys) out += (out.empty() ? "v1," : " v1,") + base64(hmac_raw(key, text));
  return out;
}

}  // namespace driftd::sinks
