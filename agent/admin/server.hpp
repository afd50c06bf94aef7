// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "admin/api.hpp"
#include "admin/peer.hpp"
#include "admin/user_names.hpp"

namespace driftd::admin {

/// Limits and access rules of the server. They do not change while it runs.
struct ServerSettings {
  std::string socket;        ///< path of the Unix socket, which serves the whole API
  std::string socket_group;  ///< its group, whose members may read and decide; empty: the agent's own
  std::string read_group;    ///< members may read; empty: none
  std::string decide_group;  ///< members may read and decide; empty: none
  /// Who may use it besides root and the agent's own user. If this or one of the two groups above names somebody, the
  /// socket has mode 0666 and the peer's credentials are checked; otherwise it has 0660.
  AccessPolicy policy;
  std::function<bool(int pid)> is_worker;  ///< plugins in workers may not use the API, whatever their user is; empty:
                                           ///< none
  /// Runs on threads of its own and may block.
  std::function<std::string(std::uint32_t uid)> user_name = admin::user_name;
  std::string listen;  ///< loopback host:port of /metrics, /livez, /readyz; empty: off; port 0: any free one
  std::chrono::seconds read_timeout{10};  ///< until a request has arrived completely
  std::chrono::seconds idle_timeout{60};  ///< between the requests of a connection; a connection on the port carries
                                          ///< one request
  std::chrono::seconds port_timeout{5};   ///< until a request on the port has arrived completely
  std::size_t max_body = 1u << 20;        ///< bytes of a request's body; a longer one is refused
  std::size_t max_unix = 64;              ///< connections on the socket; more are answered 503
  std::size_t max_per_user = 16;          ///< of those, for each user except root and the agent's own
  std::size_t reserved = 8;               ///< of those, only for root and the agent's own user
  std::size_t max_port = 8;  ///< connections on the port; a new one replaces the oldest that has not sent a request
  /// Maximum bytes of all answers that are being made or wait to be read. Beyond it a list is answered 503.
  std::size_t max_answer_bytes = 64u << 20;
  std::size_t reserved_answer_bytes = 16u << 20;  ///< of those, only for root and the agent's own user
  std::size_t max_refusals = 16;  ///< connections that are being refused with a reason; more are closed without one
};

/// HTTP/1.1 over a Unix socket and a loopback port. Core thread. Everything that it was given must outlive it. stop()
/// is idempotent, removes the socket file and returns once no connection is left.
class Server {
 public:
  /// Binds both. Returns `conflict` if an agent answers on the socket already; `denied`, `unavailable` … name the path
  /// or port.
  static Result<std::unique_ptr<Server>> open(asio::any_io_executor core, ServerSettings settings,
                                              ApiDependencies deps);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  void start();  ///< begins to accept; call once
  Task<void> stop();
  /// As Api::audit_unwritten_denials(): call it now and then, and with `all` after stop().
  Task<void> audit_unwritten_denials(bool all);
  /// Returns the TCP port; 0 if there is none.
  int port() const;

 private:
  struct State;  ///< private, so functions of server.cpp take a pointer to it as a template parameter
  explicit Server(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;  ///< shared with the coroutines of the connections
};

}  // namespace driftd::admin
