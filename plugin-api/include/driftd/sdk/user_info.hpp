// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <string_view>

// Where user and password of a URL end, also where nobody escaped what stands in them. A part of secret_text.hpp. Pure.
//   postgres://app:pw@db/orders          ends behind the @: `app:pw@`
//   amqp://app:p/w@mq                    the same, because `p` is not a port: `app:p/w@`
//   https://hub:5000/img@sha256:9f86     has none: behind the @ no server begins
//   https://db/?mail=a@b                 has none: the authority ends at the `/`
namespace driftd::sdk::secret_text_detail {

/// True for a letter or a digit; only those of ASCII in the C locale.
inline bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

/// Also true for the empty text.
inline bool all_digits(std::string_view text) { return text.find_first_not_of("0123456789") == text.npos; }

/// True for 0 to 65535, and for the empty text: `host:` is a URL without a port.
inline bool is_port(std::string_view text) {
  return all_digits(text) && text.size() <= 5 && (text.size() < 5 || text <= "65535");
}

/// True if a server and its port can begin so: a name, an address, `[::1]`. A digest (`sha256:9f86…`) and a version
/// (`v1.2.3`) cannot: the one's port is not a number, and no name ends in a number that is not of an IPv4 address
/// (WHATWG URL, 3.5).
inline bool begins_with_host(std::string_view text) {
  if (!text.empty() && text.front() == '[') return true;
  const std::string_view server = text.substr(0, text.find_first_of("/?#,@"));
  const auto colon = server.find(':');
  if (colon != server.npos && !is_port(server.substr(colon + 1))) return false;
  const std::string_view host = server.substr(0, colon);
  if (host.empty() || host.find_first_of("\"'<>()\\") != host.npos) return false;
  const std::string_view last = host.substr(host.rfind('.') + 1);  // npos + 1 is the beginning
  const bool four =
      std::count(host.begin(), host.end(), '.') == 3 && host.find_first_not_of("0123456789.") == host.npos;
  return last.size() == host.size() || last.empty() || !all_digits(last) || four;
}

/// user_info() where what follows the first colon may be a port, or the beginning of a password with a slash. In doubt
/// it is a password: where behind an @ a server can stand. `token` begins behind the `://` and ends before a blank.
/// Returns 0 if there is no user-info.
inline std::size_t user_info_of_digits(std::string_view token) {
  token = token.substr(0, token.find('"'));  // which stands around URLs and never in one
  for (auto next = token.find("://"); next != token.npos; next = token.find("://", next + 3)) {
    std::size_t begin = next;  // of the scheme of another URL of a list
    while (begin > 0 &&
           (is_word(token[begin - 1]) || std::string_view("+.-").find(token[begin - 1]) != std::string_view::npos))
      --begin;
    if (begin == next || begin == 0 || token[begin - 1] != ',') continue;
    token = token.substr(0, begin - 1);
    break;
  }
  for (auto at = token.rfind('@'); at != token.npos; at = at == 0 ? token.npos : token.rfind('@', at - 1)) {
    if (begins_with_host(token.substr(at + 1))) return at + 1;
  }
  return 0;
}

/// Returns where the user-info of a URL ends, in bytes behind its `://`: behind the last @ of the authority, or 0. A
/// password may hold a
/// slash that nobody escaped; then what follows the first colon is no port, or looks like one.
inline std::size_t user_info(std::string_view rest) {
  const std::string_view token = rest.substr(0, rest.find_first_of(" \t\n"));
  const std::string_view authority = token.substr(0, token.find('/'));
  if (const auto at = authority.rfind('@'); at != authority.npos) return at + 1;
  const auto colon = authority.find(':');
  if (authority.empty() || authority.front() == '[' || colon == authority.npos) return 0;
  const std::string_view port = authority.substr(colon + 1, authority.substr(colon + 1).find(','));
  const auto at = token.rfind('@');
  if (at == token.npos) return 0;
  if (!is_port(port)) return at + 1;
  const bool query = authority.substr(0, colon).find_first_of("?#") != authority.npos;  // the colon is of what it says
  return query ? 0 : user_info_of_digits(token);
}

}  // namespace driftd::sdk::secret_text_detail
