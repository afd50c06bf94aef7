// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "check/check.hpp"

namespace driftd::check {

/// A network peer on loopback that never answers. It exists as long as this object.
class BlackHole {
 public:
  /// deaf: accepts and never reads or writes; full: connecting never succeeds; refusing: connecting is refused
  enum class Kind { deaf, full, refusing };
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

/// Returns the subject's settings with each network peer replaced by `host:port`. A peer is a value such as host:port,
/// [v6]:port, a URL, a list of those, or a `host` beside a `port`. Tokens stay as they are. If the settings name no
/// peer, a setting of the schema whose name sounds like an address is set. Throws CheckNotApplicable if the plugin
/// has no such setting, CheckNotMade if none can be set.
std::string settings_with_peer(const Subject& subject, const std::string& settings_schema, const std::string& host,
                               int port);

/// Returns `text` with its network peer replaced. Empty if `text` names no peer.
std::string replace_peer(const std::string& text, const std::string& host, int port);

}  // namespace driftd::check
