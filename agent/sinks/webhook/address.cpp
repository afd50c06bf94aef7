// SPDX-License-Identifier: Apache-2.0
#include "sinks/webhook/address.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <algorithm>
#include <charconv>
#include <cstring>
#include <stdexcept>

#include "webhook_refused_networks.hpp"

namespace driftd::sinks {
namespace {

/// How an IPv4 address begins as an IPv6 one: ::ffff:0:0/96.
constexpr unsigned char kMappedPrefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

/// A network that is not connected.
struct Refused {
  Network network;
  std::string_view cidr, why;  ///< as in the data file
};

/// Returns the networks of refused_networks.txt. A test reads the file, too; a line that cannot be read ends the agent.
std::vector<Refused> read_refused() {
  std::vector<Refused> out;
  std::string_view rest = webhook_refused_networks;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    if (line.empty() || line.starts_with('#')) continue;
    const auto first = line.find('\t'), second = line.find('\t', first + 1);
    const auto network = Network::parse(line.substr(0, first));
    if (first == std::string_view::npos || second == std::string_view::npos || !network) {
      throw std::logic_error("refused_networks.txt: '" + std::string(line) + "'");
    }
    out.push_back({*network, line.substr(0, first), line.substr(first + 1, second - first - 1)});
  }
  return out;
}

const std::vector<Refused>& refused_networks() {
  static const std::vector<Refused> networks = read_refused();
  return networks;
}

bool to_bytes(const sockaddr* address, unsigned char (&out)[16]) {
  if (address->sa_family == AF_INET6) {
    std::memcpy(out, &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr, 16);
    return true;
  }
  if (address->sa_family != AF_INET) return false;
  std::memcpy(out, kMappedPrefix, 12);
  std::memcpy(out + 12, &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, 4);
  return true;
}

std::string text_of(const unsigned char (&ip)[16]) {
  char text[INET6_ADDRSTRLEN] = {};
  if (std::memcmp(ip, kMappedPrefix, 12) == 0) {
    ::inet_ntop(AF_INET, ip + 12, text, sizeof text);
  } else {
    ::inet_ntop(AF_INET6, ip, text, sizeof text);
  }
  return text;
}

}  // namespace

Result<Network> Network::parse(std::string_view text) {
  const auto bad = [text] {
    return fail(Code::invalid,
                "'" + std::string(text) + "' is not a network; expected CIDR such as 10.1.0.0/16 or fd00::/8");
  };
  const auto slash = text.find('/');
  const std::string host(text.substr(0, slash));
  Network out;
  const bool v4 = ::inet_pton(AF_INET, host.c_str(), out.address + 12) == 1;
  if (v4) std::memcpy(out.address, kMappedPrefix, 12);
  if (!v4 && ::inet_pton(AF_INET6, host.c_str(), out.address) != 1) return bad();
  const int width = v4 ? 32 : 128;
  int bits = width;
  if (slash != std::string_view::npos) {
    const std::string_view digits = text.substr(slash + 1);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), bits);
    if (error != std::errc{} || end != digits.data() + digits.size() || bits < 0 || bits > width) return bad();
  }
  out.bits = bits + (128 - width);
  return out;
}

bool Network::v4() const { return bits >= 96 && std::memcmp(address, kMappedPrefix, 12) == 0; }

bool Network::contains(const unsigned char (&ip)[16]) const {
  const auto whole = static_cast<std::size_t>(bits / 8);
  if (std::memcmp(ip, address, whole) != 0) return false;
  const int rest = bits % 8;
  if (rest == 0) return true;
  const auto mask = static_cast<unsigned char>(0xff << (8 - rest));
  return (ip[whole] & mask) == (address[whole] & mask);
}

Result<AddressGuard> AddressGuard::make(const std::vector<std::string>& allow, bool allow_loopback) {
  (void)refused_networks();  // so that a wrong line ends a start, and no request
  AddressGuard guard;
  for (const auto& cidr : allow) {
    DRIFTD_TRY(auto network, Network::parse(cidr));
    guard.allow_.push_back(network);
  }
  for (const char* loopback : {"127.0.0.0/8", "::1/128"}) {
    DRIFTD_TRY(auto network, Network::parse(loopback));
    if (allow_loopback) guard.allow_.push_back(network);
  }
  return guard;
}

std::string AddressGuard::refusal(const sockaddr* address) const {
  unsigned char ip[16];
  if (!to_bytes(address, ip)) return "the address is neither IPv4 nor IPv6";
  for (const auto& network : allow_) {
    if (network.contains(ip)) return {};
  }
  const bool v4 = std::memcmp(ip, kMappedPrefix, 12) == 0;
  for (const auto& [network, cidr, why] : refused_networks()) {
    if (network.v4() != v4 || !network.contains(ip)) continue;
    return text_of(ip) + " is " + std::string(why) + " (" + std::string(cidr) +
           "); allow it in the sink's `allow` if it is meant";
  }
  return {};
}

std::string AddressGuard::refusal(const std::string& host) const {
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  if (::inet_pton(AF_INET, host.c_str(), &v4.sin_addr) == 1) return refusal(reinterpret_cast<const sockaddr*>(&v4));
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  if (::inet_pton(AF_INET6, host.c_str(), &v6.sin6_addr) == 1) return refusal(reinterpret_cast<const sockaddr*>(&v6));
  return {};
}

}  // namespace driftd::sinks
