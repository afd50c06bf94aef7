// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace driftd::sinks {

/// A network in CIDR form; IPv4 is stored as mapped IPv6. A bare address is a network of one address.
struct Network {
  unsigned char address[16] = {};
  int bits = 0;
  static Result<Network> parse(std::string_view text);
  bool v4() const;  ///< it is one of IPv4
  bool contains(const unsigned char (&ip)[16]) const;
};

/// Checks the address that a socket is about to connect to, after all name resolution: refused are the networks of
/// refused_networks.txt. Immutable.
class AddressGuard {
 public:
  /// `allow`: CIDRs that are allowed; with `allow_loopback` loopback is allowed too. `invalid` names the bad CIDR.
  static Result<AddressGuard> make(const std::vector<std::string>& allow, bool allow_loopback);
  /// Returns why the address may not be connected, such as `10.0.0.5 is private (10.0.0.0/8)`. Empty if it may.
  std::string refusal(const sockaddr* address) const;
  /// The same for an address in text. Empty for a name.
  std::string refusal(const std::string& host) const;

 private:
  std::vector<Network> allow_;
};

}  // namespace driftd::sinks
