// SPDX-License-Identifier: Apache-2.0
#include "sinks/webhook/address.hpp"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>

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
