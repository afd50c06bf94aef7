// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "admin/link_pages.hpp"

namespace driftd::admin {

/// Limits of the server for links. They do not change while it runs.
struct LinkServerSettings {
  std::string listen;                   ///< loopback host:port, behind a proxy that speaks https
  std::chrono::seconds timeout{5};      ///< of a connection: it carries one request
  std::size_t max_connections = 32;     ///< more are closed at once
  std::chrono::milliseconds pace{100};  ///< between requests that ask the store, on average
  int burst = 30;                       ///< of such requests; beyond it, they are answered 429
};

/// HTTP/1.1 for the pages of links, on a port of its own: no other path of the API is reachable there. Core thread.
class LinkServer {
 public:
  static Result<std::unique_ptr<LinkServer>> open(asio::any_io_executor core, LinkServerSettings settings,
                                                  LinkDependencies deps);
  ~LinkServer();
  LinkServer(const LinkServer&) = delete;
  LinkServer& operator=(const LinkServer&) = delete;

  void start();  ///< begins to accept; call once
  Task<void> stop();
  /// As LinkPages::audit_unwritten_denials(): call it now and then, and with `all` after stop().
  Task<void> audit_unwritten_denials(bool all);
  int port() const;

 private:
  struct State;
  explicit LinkServer(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace driftd::admin
