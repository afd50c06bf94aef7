// SPDX-License-Identifier: Apache-2.0
// The HTTP receiver of bench_webhooks, in a process of its own.
#pragma once

#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <string>
#include <utility>

#include "base/task.hpp"

namespace driftd::bench {

namespace beast = boost::beast;
namespace http = beast::http;
using tcp = asio::ip::tcp;

/// A body with this text is refused.
inline constexpr const char* kPoison = "refused-for-ever";

/// Answers the requests of one connection: /hang after 20 s, a body with kPoison by 500, all others by 204.
inline Task<void> serve(tcp::socket socket) {
  beast::flat_buffer buffer;
  try {
    while (true) {
      http::request<http::string_body> request;
      co_await http::async_read(socket, buffer, request, asio::use_awaitable);
      if (request.target() == "/hang") {
        asio::steady_timer timer(socket.get_executor(), std::chrono::seconds(20));
        co_await timer.async_wait(asio::use_awaitable);
      }
      const bool poison = request.body().find(kPoison) != std::string::npos;
      http::response<http::empty_body> response(poison ? http::status::internal_server_error : http::status::no_content,
                                                request.version());
      response.keep_alive(request.keep_alive());
      response.prepare_payload();
      co_await http::async_write(socket, response, asio::use_awaitable);
    }
  } catch (const boost::system::system_error&) {
    // the other side is gone, and so is this connection
  }
}

inline Task<void> accept(tcp::acceptor acceptor) {
  while (true) {
    tcp::socket socket = co_await acceptor.async_accept(asio::use_awaitable);
    socket.set_option(tcp::no_delay(true));
    asio::co_spawn(acceptor.get_executor(), serve(std::move(socket)), asio::detached);
  }
}

/// Serves on this loopback port until it is killed.
inline int receive(int port) {
  asio::io_context io(1);
  tcp::acceptor acceptor(io, tcp::endpoint(asio::ip::address_v4::loopback(), static_cast<std::uint16_t>(port)));
  asio::co_spawn(io, accept(std::move(acceptor)), asio::detached);
  io.run();
  return 0;
}

}  // namespace driftd::bench
