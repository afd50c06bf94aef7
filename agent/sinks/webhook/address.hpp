// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace driftd::sinks {

/// A network in CIDR form, IPv4 as its mapped IPv6 form. A bare address is a network of one.
struct Network {
  unsigned char address[16] = {};
  int bits = 0;
  static Result<Network> parse(std::string_view text);
  bool contains(const unsigned char (&ip)[16]) const;
};

/// Decides on the address that a socket is about to be connected to, after all name resolution. Immutable.
class AddressGuard {
 public:
  /// `allow`: CIDRs; loopback is allowed beside them when `allow_loopback`. `invalid` names the bad CIDR.
  static Result<AddressGuard> make(const std::vector<std::string>& allow, bool allow_loopback);
  /// Empty when the address may be connected; otherwise why not: `10.0.0.5 is private (10.0.0.0/8)`.
  std::string refusal(const sockaddr* address) const;

 private:
  std::vector<Network> allow_;
};

}  // namespace driftd::sinks
