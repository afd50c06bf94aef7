// SPDX-License-Identifier: Apache-2.0
#include "keycloak/token.hpp"

#include <openssl/evp.h>
#include <algorithm>
#include <nlohmann/json.hpp>

namespace driftd::keycloak {
namespace {

using nlohmann::json;

/// Decodes base64url without padding. Empty if it is none.
std::string from_base64url(std::string text) {
  std::replace(text.begin(), text.end(), '-', '+');
  std::replace(text.begin(), text.end(), '_', '/');
  const std::size_t padding = (4 - text.size() % 4) % 4;
  text.append(padding, '=');
  std::string out(3 * (text.size() / 4) + 1, '\0');
  const int size = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                                   reinterpret_cast<const unsigned char*>(text.data()), static_cast<int>(text.size()));
  if (size < 0 || static_cast<std::size_t>(size) < padding) return {};
  out.resize(static_cast<std::size_t>(size) - padding);
  return out;
}

/// The claim `iat` of a JSON web token. Nothing is verified: it is only used as the clock of the server that was asked.
std::int64_t issued_ms(const std::string& bearer) {
  const auto first = bearer.find('.');
  const auto second = first == std::string::npos ? first : bearer.find('.', first + 1);
  if (second == std::string::npos) return 0;
  const json claims = json::parse(from_base64url(bearer.substr(first + 1, second - first - 1)), nullptr, false);
  if (!claims.is_object() || !claims.contains("iat") || !claims["iat"].is_number_integer()) return 0;
  return claims["iat"].get<std::int64_t>() * 1000;
}

}  // namespace

std::optional<AccessToken> parse_token(std::string_view body) {
  const json answer = json::parse(body, nullptr, false);
  if (!answer.is_object() || !answer.contains("access_token") || !answer["access_token"].is_string()) return {};
  AccessToken out;
  out.bearer = answer["access_token"].get<std::string>();
  if (out.bearer.empty()) return {};
  if (answer.contains("expires_in") && answer["expires_in"].is_number_integer())
    out.lifetime = std::chrono::seconds(answer["expires_in"].get<std::int64_t>());
  out.issued_ms = issued_ms(out.bearer);
  return out;
}

}  // namespace driftd::keycloak
