// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "admin/api.hpp"
#include "admin/peer.hpp"

namespace driftd::admin {

struct ServerSettings {
  std::string socket;        ///< path of the Unix socket: mode 0660, the whole API
  std::string socket_group;  ///< its group, whose members may use it; empty: the agent's own
  Permit permit;             ///< who may use it beside root and the agent's own user
  std::function<bool(int pid)> is_worker;  ///< whose plugin may not command the agent, whoever its user is; empty: none
  std::string listen;        ///< loopback host:port of /metrics, /livez, /readyz; empty: off; port 0: a free one
  std::chrono::seconds read_timeout{10};  ///< for a request to arrive whole
  std::chrono::seconds idle_timeout{60};  ///< between requests of a connection
  std::size_t most_body = 1u << 20;
  int most_connections = 64;  ///< over both sockets; more are answered 503
};

/// HTTP/1.1 over a Unix socket and a loopback port. Core thread; everything it was given outlives it. stop() is
/// idempotent, removes the socket file and returns once no connection is left.
class Server {
 public:
  /// Binds both; `conflict` when an agent answers on the socket already, `denied`, `unavailable` … name the path or port.
  static Result<std::unique_ptr<Server>> open(asio::any_io_executor core, ServerSettings settings, Backstage backstage);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  void start();
  Task<void> stop();
  /// The port that is listened on; 0: none.
  int port() const;

 private:
  struct State;
  explicit Server(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace driftd::admin
