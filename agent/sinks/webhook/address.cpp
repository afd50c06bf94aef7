// SPDX-License-Identifier: Apache-2.0
#include "sinks/webhook/address.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <charconv>
#include <cstring>

namespace driftd::sinks {
namespace {

/// How an IPv4 address begins as an IPv6 one: ::ffff:0:0/96.
constexpr unsigned char kMappedPrefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

struct Refused {
  const char* cidr;
  const char* why;
};
/// Networks that are not global unicast, or that tunnel to such networks.
constexpr Refused kRefusedNetworks[] = {{"0.0.0.0/8", "this network"},
                                        {"10.0.0.0/8", "private"},
                                        {"100.64.0.0/10", "carrier-grade NAT"},
                                        {"127.0.0.0/8", "loopback"},
                                        {"169.254.0.0/16", "link-local"},
                                        {"172.16.0.0/12", "private"},
                                        {"192.0.0.0/24", "protocol space"},
                                        {"192.0.2.0/24", "documentation"},
                                        {"192.88.99.0/24", "6to4 relay"},
                                        {"192.168.0.0/16", "private"},
                                        {"198.18.0.0/15", "benchmarking"},
                                        {"198.51.100.0/24", "documentation"},
                                        {"203.0.113.0/24", "documentation"},
                                        {"224.0.0.0/4", "multicast"},
                                        {"240.0.0.0/4", "reserved"},
                                        {"::/96", "unspecified or loopback"},
                                        {"64:ff9b::/96", "NAT64"},
                                        {"64:ff9b:1::/48", "NAT64"},
                                        {"100::/64", "discard"},
                                        {"2001::/32", "Teredo"},
                                        {"2001:db8::/32", "documentation"},
                                        {"2002::/16", "6to4"},
                                        {"fc00::/7", "private"},
                                        {"fe80::/10", "link-local"},
                                        {"fec0::/10", "site-local"},
                                        {"ff00::/8", "multicast"}};

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

bool Network::contains(const unsigned char (&ip)[16]) const {
  const auto whole = static_cast<std::size_t>(bits / 8);
  if (std::memcmp(ip, address, whole) != 0) return false;
  const int rest = bits % 8;
  if (rest == 0) return true;
  const auto mask = static_cast<unsigned char>(0xff << (8 - rest));
  return (ip[whole] & mask) == (address[whole] & mask);
}

Result<AddressGuard> AddressGuard::make(const std::vector<std::string>& allow, bool allow_loopback) {
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
  for (const auto& refused : kRefusedNetworks) {
    const auto network = Network::parse(refused.cidr);
    if (network && network->contains(ip)) {
      return text_of(ip) + " is " + refused.why + " (" + refused.cidr +
             "); allow it in the sink's `allow` if it is meant";
    }
  }
  return {};
}

}  // namespace driftd::sinks
