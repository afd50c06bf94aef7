// SPDX-License-Identifier: Apache-2.0
// Addresses: hosts, endpoints, URLs, inet and cidr. Text only: nothing is resolved.
#include <arpa/inet.h>
#include <idn2.h>
#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <memory>
#include <optional>
#include <vector>

#include "core/value/types.hpp"

namespace driftd::core::types {
namespace {

std::string json_string(std::string_view text) { return render(Value(std::string(text))); }

/// Parses an address literal into its 4 or 16 bytes.
std::optional<std::vector<std::uint8_t>> parse_address(std::string_view text) {
  if (text.find('\0') != std::string_view::npos) return std::nullopt;  // inet_pton would read only what is before it
  std::vector<std::uint8_t> out(16);
  const std::string zero_ended(text);
  if (inet_pton(AF_INET6, zero_ended.c_str(), out.data()) == 1) return out;
  out.resize(4);
  if (inet_pton(AF_INET, zero_ended.c_str(), out.data()) == 1) return out;
  return std::nullopt;
}

std::string render_address(const std::vector<std::uint8_t>& bytes) {
  std::array<char, INET6_ADDRSTRLEN> out{};
  inet_ntop(bytes.size() == 4 ? AF_INET : AF_INET6, bytes.data(), out.data(), out.size());
  return out.data();
}

/// Returns the host in lower case without a trailing dot; addresses in their shortest form, IPv6 in brackets.
std::optional<std::string> canonical_host(std::string_view text) {
  if (text.starts_with('[') && text.ends_with(']') && text.size() > 2) text = text.substr(1, text.size() - 2);
  if (const auto bytes = parse_address(text))
    return bytes->size() == 4 ? render_address(*bytes) : "[" + render_address(*bytes) + "]";
  if (text.ends_with('.')) text.remove_suffix(1);
  const bool empty_label =
      text.empty() || text.front() == '.' || text.back() == '.' || text.find("..") != std::string_view::npos;
  // names with non-ASCII characters are kept as written
  const bool bad = std::any_of(text.begin(), text.end(), [](char c) {
    const bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    return !word && c != '-' && c != '_' && c != '.' && c != '*' && static_cast<unsigned char>(c) < 0x80;
  });
  if (empty_label || bad) return std::nullopt;
  return lower(text);
}

/// Returns an internationalised name in its ASCII form (IDNA 2008); any other text as it is.
std::string ascii_name(std::string_view text) {
  const std::string name(text);
  if (std::all_of(name.begin(), name.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; })) return name;
  if (name.find('\0') != std::string::npos) return name;
  char* made = nullptr;
  const int error = idn2_to_ascii_8z(name.c_str(), &made, IDN2_NONTRANSITIONAL);
  const std::unique_ptr<char, decltype(&idn2_free)> owner(made, &idn2_free);
  return error == IDN2_OK ? std::string(made) : name;
}

/// Returns the length of a netmask of `size` bytes, such as 255.255.0.0 or ffff::. Empty if it is none.
std::optional<unsigned> mask_length(std::string_view text, std::size_t size) {
  const auto bytes = parse_address(text);
  if (!bytes || bytes->size() != size) return std::nullopt;
  unsigned length = 0;
  bool ended = false;
  for (const auto byte : *bytes) {
    const auto ones = static_cast<unsigned>(std::countl_one(byte));
    if (static_cast<std::uint8_t>(byte << ones) != 0 || (ended && byte != 0)) return std::nullopt;
    ended = ended || ones < 8;
    length += ones;
  }
  return length;
}

std::optional<std::string> canonical_port(std::string_view text) {
  unsigned port = 0;
  const auto end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, port);
  if (text.empty() || error != std::errc() || at != end || port > 65'535) return std::nullopt;
  return std::to_string(port);
}

/// Returns the port that URLs of this scheme have if they name none. Empty for an unknown scheme.
std::string usual_port(std::string_view scheme) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 18> kPorts = {{{"http", "80"},
                                                                                            {"https", "443"},
                                                                                            {"ws", "80"},
                                                                                            {"wss", "443"},
                                                                                            {"ftp", "21"},
                                                                                            {"ssh", "22"},
                                                                                            {"ldap", "389"},
                                                                                            {"ldaps", "636"},
                                                                                            {"amqp", "5672"},
                                                                                            {"amqps", "5671"},
                                                                                            {"redis", "6379"},
                                                                                            {"rediss", "6379"},
                                                                                            {"postgres", "5432"},
                                                                                            {"postgresql", "5432"},
                                                                                            {"mysql", "3306"},
                                                                                            {"nats", "4222"},
                                                                                            {"kafka", "9092"},
                                                                                            {"mongodb", "27017"}}};
  for (const auto& [name, port] : kPorts) {
    if (name == scheme) return std::string(port);
  }
  return {};
}

struct Authority {
  std::string user, host, port;  ///< port is empty if the URL has none
};

std::optional<Authority> parse_authority(std::string_view text) {
  Authority out;
  if (const auto at = text.rfind('@'); at != std::string_view::npos) {
    out.user = text.substr(0, at);
    text.remove_prefix(at + 1);
  }
  std::size_t colon = std::string_view::npos;
  if (text.starts_with('[')) {
    const auto close = text.find(']');
    if (close == std::string_view::npos) return std::nullopt;
    if (close + 1 < text.size()) {
      if (text[close + 1] != ':') return std::nullopt;
      colon = close + 1;
    }
  } else if (std::count(text.begin(), text.end(), ':') == 1) {
    colon = text.find(':');
  }
  const auto host = canonical_host(text.substr(0, colon));
  if (!host) return std::nullopt;
  out.host = *host;
  if (colon == std::string_view::npos) return out;
  const auto port = canonical_port(text.substr(colon + 1));
  if (!port) return std::nullopt;
  out.port = *port;
  return out;
}

/// Splits `scheme://rest`. Without a scheme the first part is empty.
std::pair<std::string, std::string_view> cut_scheme(std::string_view text) {
  const auto at = text.find("://");
  if (at == std::string_view::npos) return {"", text};
  return {lower(text.substr(0, at)), text.substr(at + 3)};
}

/// Parses `a.b.c.d/n` into address and prefix length. Without `/n` the length is all bits.
std::optional<std::pair<std::vector<std::uint8_t>, unsigned>> network(std::string_view text, bool netmask = false) {
  text = strip(text);
  const auto slash = text.find('/');
  auto bytes = parse_address(text.substr(0, slash));
  if (!bytes) return std::nullopt;
  unsigned bits = static_cast<unsigned>(bytes->size()) * 8;
  if (slash == std::string_view::npos) return std::pair(*bytes, bits);
  unsigned length = 0;
  const auto digits = text.substr(slash + 1);
  if (netmask && digits.find_first_of(".:") != std::string_view::npos) {
    const auto found = mask_length(digits, bytes->size());
    return found ? std::optional(std::pair(*bytes, *found)) : std::nullopt;
  }
  const auto [at, error] = std::from_chars(digits.data(), digits.data() + digits.size(), length);
  if (error != std::errc() || at != digits.data() + digits.size() || length > bits) return std::nullopt;
  return std::pair(*bytes, length);
}

}  // namespace

Result<std::string> host(std::string_view text, bool idn) {
  const auto out = canonical_host(idn ? ascii_name(strip(text)) : std::string(strip(text)));
  if (!out) return type_mismatch("a host", text);
  return json_string(*out);
}

Result<std::string> endpoint(std::string_view text, std::string_view unit) {
  const auto stripped = strip(text);
  if (stripped.starts_with("unix:") || stripped.starts_with('/')) {
    auto path = stripped.starts_with("unix:") ? stripped.substr(5) : stripped;
    while (path.starts_with("//")) path.remove_prefix(1);
    return json_string("unix:" + std::string(path));
  }
  auto [scheme, rest] = cut_scheme(stripped);
  if (const auto slash = rest.find('/'); slash != std::string_view::npos && slash + 1 == rest.size())
    rest.remove_suffix(1);
  const auto authority = parse_authority(rest);
  if (!authority) return type_mismatch("an endpoint", text);
  std::string port = authority->port;
  if (port.empty()) port = usual_port(scheme);
  if (port.empty()) port = all_digits(unit) ? std::string(unit) : usual_port(unit);
  return json_string((scheme.empty() ? "" : scheme + "://") + authority->host + (port.empty() ? "" : ":" + port));
}

Result<std::string> url(std::string_view text) {
  const auto [scheme, rest] = cut_scheme(strip(text));
  if (scheme.empty()) return type_mismatch("a URL", text);
  const auto end = std::min(rest.find_first_of("/?#"), rest.size());
  const auto authority = parse_authority(rest.substr(0, end));
  if (!authority) return type_mismatch("a URL", text);
  std::string_view tail = rest.substr(end);
  const auto path_end = std::min(tail.find_first_of("?#"), tail.size());
  std::string path(tail.substr(0, path_end));
  while (path.ends_with('/')) path.pop_back();
  const bool explicit_port = !authority->port.empty() && authority->port != usual_port(scheme);
  return json_string(scheme + "://" + (authority->user.empty() ? "" : authority->user + "@") + authority->host +
                     (explicit_port ? ":" + authority->port : "") + path + std::string(tail.substr(path_end)));
}

Result<std::string> inet(std::string_view text) {
  const auto parsed = network(text);
  if (!parsed) return type_mismatch("an IP address", text);
  const auto& [bytes, length] = *parsed;
  return json_string(render_address(bytes) + (length == bytes.size() * 8 ? "" : "/" + std::to_string(length)));
}

Result<std::string> cidr(std::string_view text, bool netmask) {
  auto parsed = network(text, netmask);
  if (!parsed) return type_mismatch("a network", text);
  auto& [bytes, length] = *parsed;
  for (std::size_t bit = length; bit < bytes.size() * 8; ++bit)
    bytes[bit / 8] &= static_cast<std::uint8_t>(~(0x80u >> (bit % 8)));
  return json_string(render_address(bytes) + "/" + std::to_string(length));
}

}  // namespace driftd::core::types
