// SPDX-License-Identifier: Apache-2.0
#include "ipc/secret_forms.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include "base/secret_text.hpp"
#include "ipc/settings_schema.hpp"

namespace driftd::ipc {
namespace {

constexpr std::size_t kShortestParameter = 6;  // shorter values are not secrets: `ref=main`, `replicas=3`

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

void take_user_info(std::string_view info, SecretParts& out) {
  out.pairs.emplace_back(info);
  const auto colon = info.find(':');
  out.secrets.emplace_back(colon == std::string_view::npos ? info : info.substr(colon + 1));
}

void take_query(std::string_view query, SecretParts& out) {
  while (!query.empty()) {
    const std::string_view item = query.substr(0, query.find_first_of("&;"));
    const auto equals = item.find('=');
    const std::string_view value = equals == std::string_view::npos ? item : item.substr(equals + 1);
    if (value.size() >= kShortestParameter) out.secrets.emplace_back(value);
    query.remove_prefix(std::min(item.size() + 1, query.size()));
  }
}

/// Returns true for a host name, an address, or several separated by commas, as in a setting for a server.
bool is_address(std::string_view text) {
  if (text.empty() || text.find_first_of(" \t\n\"'@=&") != std::string_view::npos) return false;
  while (!text.empty()) {
    const std::string_view one = text.substr(0, text.find(','));
    const auto colon = one.rfind(':');
    const bool port = colon != std::string_view::npos && colon + 1 < one.size() &&
                      one.find_first_not_of("0123456789", colon + 1) == std::string_view::npos;
    const bool dotted = one.find('.') != std::string_view::npos && one.front() != '.' && one.back() != '.';
    if (one.find("://") == std::string_view::npos && one.front() != '/' && !port && !dotted) return false;
    text.remove_prefix(std::min(one.size() + 1, text.size()));
  }
  return true;
}

}  // namespace

std::string percent_decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool escape =
        text[i] == '%' && i + 2 < text.size() && hex_digit(text[i + 1]) >= 0 && hex_digit(text[i + 2]) >= 0;
    out += escape ? static_cast<char>(hex_digit(text[i + 1]) * 16 + hex_digit(text[i + 2])) : text[i];
    if (escape) i += 2;
  }
  return out;
}

std::string percent_encoded(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 ||
        std::string_view("-._~").find(c) != std::string_view::npos) {
      out += c;
    } else {
      out += '%';
      out += "0123456789ABCDEF"[static_cast<unsigned char>(c) >> 4];
      out += "0123456789ABCDEF"[static_cast<unsigned char>(c) & 15];
    }
  }
  return out;
}

std::string to_base64(std::string_view bytes) {
  constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::array<unsigned, 3> byte{};
    for (std::size_t j = 0; j < 3 && i + j < bytes.size(); ++j) byte[j] = static_cast<unsigned char>(bytes[i + j]);
    const unsigned word = byte[0] << 16 | byte[1] << 8 | byte[2];
    for (std::size_t j = 0; j < 4; ++j) out += i + j > bytes.size() ? '=' : kLetters[(word >> (18 - 6 * j)) & 63];
  }
  return out;
}

SecretParts secret_parts(std::string_view text) {
  SecretParts out;
  for (auto scheme = text.find("://"); scheme != text.npos; scheme = text.find("://", scheme + 3)) {
    const std::string_view rest = text.substr(scheme + 3);
    const std::size_t info = sdk::secret_text_detail::user_info(rest);
    if (info > 1) take_user_info(rest.substr(0, info - 1), out);
    const std::string_view url = rest.substr(info, rest.find_first_of(" \t\n", info) - info);
    const auto query = url.find_first_of("?#");
    if (query != url.npos) take_query(url.substr(query + 1), out);
  }
  constexpr std::string_view kPassword = "password=";
  const auto at = text.find(kPassword);
  if (at == text.npos) return out;
  std::string_view value = text.substr(at + kPassword.size());
  const char quote = value.starts_with('\'') ? '\'' : ' ';
  if (quote == '\'') value.remove_prefix(1);
  out.secrets.emplace_back(value.substr(0, quote == '\'' ? value.find(quote) : value.find_first_of(" &;")));
  return out;
}

void for_each_login(const core::Value& settings, const std::map<std::string, std::string>& secrets,
                    const std::function<void(const std::string&)>& take) {
  if (const auto* elements = settings.array()) {
    for (const auto& element : *elements) for_each_login(element, secrets, take);
  }
  const auto* members = settings.object();
  if (members == nullptr) return;
  const core::Value* user = settings.find("username");
  if (user == nullptr) user = settings.find("user");
  for (const auto& [name, member] : *members) {
    for_each_login(member, secrets, take);
    const auto secret = member.string() == nullptr ? secrets.end() : secrets.find(*member.string());
    if (secret != secrets.end() && user != nullptr && user->string() != nullptr)
      take(*user->string() + ":" + secret->second);
  }
}

std::string displayed_setting(std::string_view value) {
  std::string cut = without_credentials(value);
  return is_address(cut) && !may_hold_secret(cut) ? cut : "[REDACTED]";
}

}  // namespace driftd::ipc
