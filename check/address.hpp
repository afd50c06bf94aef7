// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "check/check.hpp"

namespace driftd::check {

class Provider;

/// A peer on loopback that never answers. Lives as long as the object.
class BlackHole {
 public:
  enum class Kind { deaf, full };  ///< deaf: connects, then says nothing; full: not even the connection comes about
  explicit BlackHole(Kind kind);
  ~BlackHole();
  BlackHole(const BlackHole&) = delete;
  BlackHole& operator=(const BlackHole&) = delete;
  std::string host() const { return "127.0.0.1"; }
  int port() const { return port_; }

 private:
  int port_ = 0;
  int listener_;
  std::vector<int> fillers_;
};

/// The settings with each network peer in them replaced by `host:port`: values like host:port, [v6]:port, a URL, a list
/// of those, a `host` beside a `port`. Tokens stay. When they name none, a setting of the schema that sounds like an
/// address is set. CheckNotApplicable when the provider has no such setting, CheckNotMade when none can be set.
std::string settings_with_peer(const Subject& subject, const Provider& provider, const std::string& host, int port);

/// `text` names a network peer: then with that peer replaced, else empty.
std::string replace_peer(const std::string& text, const std::string& host, int port);

}  // namespace driftd::check
