// SPDX-License-Identifier: Apache-2.0
#include "sinks/webhook/address.hpp"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <fstream>
#include <set>
#include <sstream>

namespace driftd::sinks {
namespace {

using testing::HasSubstr;

std::string refusal(const AddressGuard& guard, const std::string& text) {
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  if (::inet_pton(AF_INET, text.c_str(), &v4.sin_addr) == 1) return guard.refusal(reinterpret_cast<sockaddr*>(&v4));
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  EXPECT_EQ(::inet_pton(AF_INET6, text.c_str(), &v6.sin6_addr), 1) << text;
  return guard.refusal(reinterpret_cast<sockaddr*>(&v6));
}

TEST(AddressGuard, OnlyGlobalUnicastIsConnected) {
  const auto guard = AddressGuard::make({}, false).value();
  for (const char* inner : {"0.0.0.0",
                            "10.0.0.5",
                            "100.64.1.1",
                            "127.0.0.1",
                            "127.255.255.254",
                            "169.254.169.254",
                            "172.16.0.1",
                            "172.31.255.255",
                            "192.168.1.1",
                            "198.18.0.1",
                            "224.0.0.1",
                            "240.0.0.1",
                            "255.255.255.255",
                            "::",
                            "::1",
                            "fe80::1",
                            "fd00::1",
                            "fc00::1",
                            "ff02::1",
                            "::ffff:10.0.0.5",
                            "::ffff:169.254.169.254",
                            "64:ff9b::a00:5",
                            "2002:a00:5::",
                            "2001::1",
                            "2001:db8::1",
                            "fec0::1"}) {
    EXPECT_FALSE(refusal(guard, inner).empty()) << inner;
  }
  for (const char* outer :
       {"1.1.1.1", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "172.15.255.255", "172.32.0.0",
        "192.167.255.255", "198.20.0.0", "223.255.255.255", "2606:4700::1111", "2a00::1", "::ffff:1.1.1.1"}) {
    EXPECT_EQ(refusal(guard, outer), "") << outer;
  }
}

/// Returns the address of a network with all bits behind its prefix set, and the one before or behind it; empty if
/// there is none.
struct Edges {
  std::string first, last, before, behind;
};

std::string text_of(const std::vector<unsigned char>& ip) {
  char out[INET6_ADDRSTRLEN] = {};
  ::inet_ntop(ip.size() == 4 ? AF_INET : AF_INET6, ip.data(), out, sizeof out);
  return out;
}

/// Returns the neighbour of an address; `step` is 1 or -1. Empty at the end of all addresses.
std::string neighbour(std::vector<unsigned char> ip, int step) {
  for (auto byte = ip.rbegin(); byte != ip.rend(); ++byte) {
    *byte = static_cast<unsigned char>(*byte + step);
    if (*byte != (step > 0 ? 0 : 255)) return text_of(ip);
  }
  return {};
}

Edges edges_of(const std::string& cidr) {
  const std::string host = cidr.substr(0, cidr.find('/'));
  const int bits = std::stoi(cidr.substr(cidr.find('/') + 1));
  std::vector<unsigned char> ip(host.find(':') == std::string::npos ? 4 : 16);
  EXPECT_EQ(::inet_pton(ip.size() == 4 ? AF_INET : AF_INET6, host.c_str(), ip.data()), 1) << cidr;
  auto last = ip;
  for (std::size_t bit = static_cast<std::size_t>(bits); bit < ip.size() * 8; ++bit) {
    EXPECT_EQ(ip[bit / 8] & (0x80 >> bit % 8), 0) << cidr << " has bits behind its prefix";
    last[bit / 8] = static_cast<unsigned char>(last[bit / 8] | (0x80 >> bit % 8));
  }
  return {text_of(ip), text_of(last), neighbour(ip, -1), neighbour(last, 1)};
}

struct Line {
  std::string cidr, why, source;
};
std::vector<Line> data_file() {
  std::ifstream file(DRIFTD_SOURCE_DIR "/agent/sinks/webhook/refused_networks.txt");
  std::vector<Line> out;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line.front() == '#') continue;
    std::istringstream parts(line);
    Line one;
    std::getline(std::getline(std::getline(parts, one.cidr, '\t'), one.why, '\t'), one.source);
    out.push_back(one);
  }
  return out;
}

TEST(RefusedNetworks, EachHasASourceAndRefusesItsFirstAndItsLastAddress) {
  const auto guard = AddressGuard::make({}, false).value();
  const auto lines = data_file();
  ASSERT_GE(lines.size(), 50U);
  std::set<std::string> networks;
  for (const auto& [cidr, why, source] : lines) {
    EXPECT_THAT(source, testing::AnyOf("v4", "v6", "mc4", "s6", "azure", testing::StartsWith("RFC"))) << cidr;
    EXPECT_TRUE(networks.insert(cidr).second) << cidr << " is there twice";
    const Edges edges = edges_of(cidr);
    EXPECT_THAT(refusal(guard, edges.first), HasSubstr(edges.first + " is ")) << cidr;
    EXPECT_THAT(refusal(guard, edges.last), HasSubstr(" is ")) << cidr;
    if (cidr.find(':') == std::string::npos) {
      EXPECT_NE(refusal(guard, "::ffff:" + edges.last), "") << cidr;
    }
  }
}

TEST(RefusedNetworks, WhatLiesJustOutsideOfAllOfThemIsConnected) {
  const auto guard = AddressGuard::make({}, false).value();
  int connected = 0;
  for (const auto& line : data_file()) {
    const Edges edges = edges_of(line.cidr);
    for (const auto& outside : {edges.before, edges.behind}) {
      const std::string why = outside.empty() ? "none" : refusal(guard, outside);
      if (why.empty()) ++connected;
      // refused only by another network: never by the one that ends before it
      EXPECT_THAT(why, testing::Not(HasSubstr("(" + line.cidr + ")"))) << outside;
    }
  }
  EXPECT_GE(connected, 25);
}

TEST(RefusedNetworks, NothingOfTheRegistriesIsConnected) {
  const auto guard = AddressGuard::make({}, false).value();
  // the blocks of both IANA registries, those that are globally reachable, too
  for (const char* block :
       {"0.0.0.0/8",       "0.0.0.0/32",      "10.0.0.0/8",     "100.64.0.0/10",   "127.0.0.0/8",
        "169.254.0.0/16",  "172.16.0.0/12",   "192.0.0.0/24",   "192.0.0.0/29",    "192.0.0.8/32",
        "192.0.0.9/32",    "192.0.0.10/32",   "192.0.0.170/32", "192.0.0.171/32",  "192.0.2.0/24",
        "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16",  "192.175.48.0/24",
        "198.18.0.0/15",   "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",     "255.255.255.255/32",
        "::1/128",         "::/128",          "64:ff9b::/96",   "64:ff9b:1::/48",  "100::/64",
        "100:0:0:1::/64",  "2001::/23",       "2001::/32",      "2001:1::1/128",   "2001:1::2/128",
        "2001:1::3/128",   "2001:2::/48",     "2001:3::/32",    "2001:4:112::/48", "2001:10::/28",
        "2001:20::/28",    "2001:30::/28",    "2001:db8::/32",  "2002::/16",       "2620:4f:8000::/48",
        "3fff::/20",       "5f00::/16",       "fc00::/7",       "fe80::/10"}) {
    EXPECT_NE(refusal(guard, edges_of(block).first), "") << block;
    EXPECT_NE(refusal(guard, edges_of(block).last), "") << block;
  }
}

TEST(RefusedNetworks, AnIPv4AddressInsideOfAnIPv6OneIsNoWayAround) {
  const auto guard = AddressGuard::make({}, false).value();
  EXPECT_THAT(refusal(guard, "::ffff:127.0.0.1"), HasSubstr("loopback (127.0.0.0/8)"));  // mapped
  EXPECT_THAT(refusal(guard, "::ffff:0:127.0.0.1"), HasSubstr("translated"));
  EXPECT_THAT(refusal(guard, "::127.0.0.1"), HasSubstr("embedded"));
  EXPECT_THAT(refusal(guard, "64:ff9b::169.254.169.254"), HasSubstr("NAT64"));
  EXPECT_THAT(refusal(guard, "64:ff9b:1::10.0.0.1"), HasSubstr("NAT64"));
  EXPECT_THAT(refusal(guard, "2002:7f00:1::1"), HasSubstr("6to4"));
  EXPECT_THAT(refusal(guard, "2001:0:a00:1::f5ff:fffe"), HasSubstr("Teredo"));
  EXPECT_EQ(refusal(guard, "::ffff:8.8.8.8"), "");
  EXPECT_EQ(AddressGuard::make({"64:ff9b::/96"}, false)->refusal(std::string("64:ff9b::808:808")), "");
}

TEST(AddressGuard, RefusalNamesTheAddressItsNetworkAndTheWayOut) {
  const auto guard = AddressGuard::make({}, false).value();
  EXPECT_EQ(refusal(guard, "169.254.169.254"),
            "169.254.169.254 is link-local (169.254.0.0/16); allow it in the sink's `allow` if it is meant");
}

TEST(AddressGuard, AllowedNetworksAreExactToTheBit) {
  const auto guard = AddressGuard::make({"10.1.128.0/17", "fd00:1::/33", "192.168.7.9"}, false).value();
  EXPECT_EQ(refusal(guard, "10.1.128.0"), "");
  EXPECT_EQ(refusal(guard, "10.1.255.255"), "");
  EXPECT_EQ(refusal(guard, "::ffff:10.1.200.1"), "");
  EXPECT_NE(refusal(guard, "10.1.127.255"), "");
  EXPECT_EQ(refusal(guard, "fd00:1:7fff::1"), "");
  EXPECT_NE(refusal(guard, "fd00:1:8000::1"), "");
  EXPECT_EQ(refusal(guard, "192.168.7.9"), "");
  EXPECT_NE(refusal(guard, "192.168.7.8"), "");
}

TEST(AddressGuard, LoopbackIsAllowedOnlyOnRequest) {
  const auto guard = AddressGuard::make({}, true).value();
  EXPECT_EQ(refusal(guard, "127.0.0.1"), "");
  EXPECT_EQ(refusal(guard, "::1"), "");
  EXPECT_NE(refusal(guard, "10.0.0.1"), "");
}

TEST(AddressGuard, BadNetworkIsNamed) {
  for (const char* bad :
       {"10.0.0.0/33", "10.0.0/8", "fd00::/129", "", "10.0.0.0/", "10.0.0.0/-1", "10.0.0.0/8x", "example.org"}) {
    const auto guard = AddressGuard::make({bad}, false);
    ASSERT_FALSE(guard) << bad;
    EXPECT_THAT(guard.error().message, HasSubstr("'" + std::string(bad) + "'"));
  }
}

}  // namespace
}  // namespace driftd::sinks
