// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/task.hpp"

namespace driftd::rpc {

/// Accepts the TCP connections of gRPC, which itself would accept any number of them. At most 256 are open, and 64 of
/// one address (one /64 of IPv6), so that one host cannot keep the others out; what is beyond is closed at once. Core
/// thread.
class TcpDoor {
 public:
  static constexpr std::size_t kMaxConnections = 256, kMaxOfAddress = 64;
  /// Gets a connection that may stay: a non-blocking socket, which belongs to it from then on.
  using Take = std::function<void(int socket)>;
  TcpDoor(asio::any_io_executor core, Take take) : core_(std::move(core)), take_(std::move(take)) {}

  /// Binds HOST:PORT, each address that HOST has and this machine too. Returns the port. Nothing is accepted before
  /// start(). `invalid` for another form, `unavailable` if the name is not known or the port cannot be had.
  Task<Result<int>> bind(std::string host_and_port);
  void start();
  /// Ends accepting; open connections stay. Returns when no coroutine of the door is left. Idempotent.
  Task<void> stop();

 private:
  using Tcp = asio::ip::tcp;
  using Acceptor = asio::basic_socket_acceptor<Tcp, asio::any_io_executor>;
  struct Connection {
    std::uint64_t inode = 0;  ///< of the socket: another one under the same descriptor has another
    std::string address;      ///< of the peer, or its /64
  };

  boost::system::error_code listen(const Tcp::endpoint& endpoint);
  Task<void> accept(Acceptor& acceptor);
  void admit(int socket, const std::string& address);
  /// Returns why one more connection of this address is too many; empty if it is not.
  std::string refusal(const std::string& address);
  void report(const std::string& address, const std::string& why);

  asio::any_io_executor core_;
  Take take_;
  std::vector<Acceptor> acceptors_;
  std::map<int, Connection> open_;  ///< by descriptor, which gRPC owns and closes
  std::size_t accepting_ = 0;       ///< running coroutines
  bool stopping_ = false;
  std::uint64_t refused_ = 0;  ///< since the last line of the log
  std::chrono::steady_clock::time_point next_line_{};
};

}  // namespace driftd::rpc
