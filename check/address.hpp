// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "check/check.hpp"

namespace driftd::check {

/// A peer that never answers, on loopback or at a Unix socket. It exists as long as this object.
class BlackHole {
 public:
  /// deaf: accepts and never reads or writes; full: connecting never succeeds, or of a datagram socket sending;
  /// refusing: connecting is refused
  enum class Kind { deaf, full, refusing };
  enum class Network { tcp, unix_stream, unix_datagram };
  explicit BlackHole(Kind kind);                                     ///< over TCP
  BlackHole(Kind kind, Network network, const std::string& folder);  ///< its Unix socket is made in the folder
  ~BlackHole();
  BlackHole(const BlackHole&) = delete;
  BlackHole& operator=(const BlackHole&) = delete;
  std::string host() const { return "127.0.0.1"; }
  int port() const { return port_; }
  const std::string& path() const { return path_; }  ///< of its Unix socket; empty over TCP

 private:
  void fill_tcp();
  void listen_at_unix_socket(Kind kind, Network network);
  int port_ = 0;
  std::string path_;
  int listener_ = -1;
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
