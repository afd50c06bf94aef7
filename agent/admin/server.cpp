// SPDX-License-Identifier: Apache-2.0
#include "admin/server.hpp"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <functional>
#include <map>
#include <unistd.h>

#include "admin/listen.hpp"
#include "base/fatal.hpp"
#include "base/log.hpp"

namespace driftd::admin {
namespace {

namespace beast = boost::beast;
namespace http = beast::http;
using Local = asio::local::stream_protocol;
using Tcp = asio::ip::tcp;
template <class Protocol>
using Stream = beast::basic_stream<Protocol, asio::any_io_executor>;
using HttpRequest = http::request<http::string_body>;
using HttpResponse = http::response<http::string_body>;

auto quiet(boost::system::error_code& code) { return asio::redirect_error(asio::use_awaitable, code); }

/// Who asks, and which of the two doors they came through.
struct Caller {
  bool unix_socket = false;
  Result<Peer> peer;
};

Caller caller_of(const Stream<Local>& stream) {
  return {true, peer_of(const_cast<Stream<Local>&>(stream).socket().native_handle())};
}
Caller caller_of(const Stream<Tcp>&) { return {false, fail(Code::denied, "no peer on TCP")}; }

HttpResponse to_http(Response from, const HttpRequest& request) {
  HttpResponse out{static_cast<http::status>(from.status), request.version()};
  out.set(http::field::content_type, from.type);
  out.set(http::field::cache_control, "no-store");
  out.set(http::field::server, "driftd");
  out.keep_alive(request.keep_alive());
  const bool head = request.method() == http::verb::head;
  const std::size_t size = from.body.size();
  if (!head) out.body() = std::move(from.body);
  out.prepare_payload();
  if (head) out.content_length(size);
  return out;
}

}  // namespace

struct Server::State {
  State(asio::any_io_executor executor, ServerSettings given, Backstage backstage)
      : core(executor), settings(std::move(given)), api(std::move(backstage)), changed(core) {}

  asio::any_io_executor core;
  ServerSettings settings;
  Api api;
  asio::basic_socket_acceptor<Local, asio::any_io_executor> local{core};
  asio::basic_socket_acceptor<Tcp, asio::any_io_executor> tcp{core};
  asio::steady_timer changed;  ///< cancelled when a connection or acceptor ends
  std::map<std::uint64_t, std::function<void()>> closers;  ///< of living connections
  std::uint64_t next = 0;
  int loops = 0;
  bool stopping = false;
};

namespace {

template <class StatePtr>
Task<Response> answer(StatePtr state, HttpRequest request, Caller caller) {
  if (!caller.unix_socket && !is_loopback_host(request[http::field::host])) {
    co_return error_response({Code::denied, "the Host header must name this machine's loopback"});
  }
  if (caller.unix_socket && !caller.peer) co_return error_response(caller.peer.error());
  if (caller.unix_socket && !state->settings.permit.allows(*caller.peer)) {
    co_return error_response({Code::denied, "user " + caller.peer->name +
                                                " may not use this agent's API; ask for admin.socket_group or admin.uids"});
  }
  if (caller.unix_socket && state->settings.is_worker && state->settings.is_worker(caller.peer->pid)) {
    log::room("admin").warn("a plugin's worker (pid {}) tried to use the agent's API: refused", caller.peer->pid);
    co_return error_response({Code::denied, "a plugin may not use the API of its agent"});
  }
  auto parsed = parse_target(request.target());
  if (!parsed) co_return error_response(parsed.error());
  parsed->method = std::string(request.method_string());
  parsed->body = std::move(request.body());
  if (caller.unix_socket) {
    parsed->actor = caller.peer->name;
    Response out = co_await state->api.handle(std::move(*parsed));
    co_return out;
  }
  Response out = co_await state->api.probe(std::move(*parsed));
  co_return out;
}

template <class Protocol>
Task<bool> send(Stream<Protocol>& stream, HttpResponse response) {
  boost::system::error_code code;
  const bool keep = response.keep_alive();
  co_await http::async_write(stream, response, quiet(code));
  co_return !code && keep;
}

Response refusal(const boost::system::error_code& code) {
  if (code == http::error::body_limit) return {413, error_response({Code::invalid, "the request body is too big"}).body};
  return error_response({Code::invalid, "not readable as HTTP/1.1: " + code.message()});
}

/// Reads and answers one request; false: the connection is over.
template <class StatePtr, class Protocol>
Task<bool> serve_one(StatePtr state, Stream<Protocol>& stream, beast::flat_buffer& buffer, bool first) {
  http::request_parser<http::string_body> parser;
  parser.header_limit(16 * 1024);
  parser.body_limit(state->settings.most_body);
  boost::system::error_code code;
  stream.expires_after(first ? state->settings.read_timeout : state->settings.idle_timeout);
  co_await http::async_read_header(stream, buffer, parser, quiet(code));
  stream.expires_after(state->settings.read_timeout);
  if (!code) co_await http::async_read(stream, buffer, parser, quiet(code));
  if (code == http::error::end_of_stream || code == beast::error::timeout || code == asio::error::operation_aborted ||
      code == asio::error::connection_reset) {
    co_return false;
  }
  if (code) {
    HttpResponse bad = to_http(refusal(code), HttpRequest{});
    bad.keep_alive(false);
    co_await send(stream, std::move(bad));
    co_return false;
  }
  stream.expires_never();  // a refresh may take its time; the client decides how long it waits
  HttpRequest request = parser.release();
  HttpRequest head = HttpRequest(request.base());
  Response out = co_await answer(state, std::move(request), caller_of(stream));
  HttpResponse response = to_http(std::move(out), head);
  if (state->stopping) response.keep_alive(false);
  stream.expires_after(state->settings.read_timeout);
  const bool more = co_await send(stream, std::move(response));
  co_return more;
}

template <class StatePtr, class Protocol>
Task<void> serve(StatePtr state, std::shared_ptr<Stream<Protocol>> stream, std::uint64_t id, bool full) {
  beast::flat_buffer buffer(64 * 1024 + state->settings.most_body);
  if (full) {  // read first: closing on an unread request would reset the connection under our answer
    http::request_parser<http::empty_body> unread;
    boost::system::error_code code;
    stream->expires_after(std::chrono::seconds(1));
    co_await http::async_read_header(*stream, buffer, unread, quiet(code));
    HttpResponse busy = to_http(error_response({Code::unavailable, "too many connections to the API"}), HttpRequest{});
    busy.keep_alive(false);
    stream->expires_after(state->settings.read_timeout);
    co_await send(*stream, std::move(busy));
  }
  bool more = !full;
  for (bool first = true; more; first = false) more = co_await serve_one(state, *stream, buffer, first);
  boost::system::error_code ignored;  // the other side may be gone already
  stream->socket().shutdown(asio::socket_base::shutdown_both, ignored);
  state->closers.erase(id);
  state->changed.cancel();
}

template <class StatePtr, class Acceptor>
Task<void> accept(StatePtr state, Acceptor& acceptor) {
  using Protocol = typename Acceptor::protocol_type;
  asio::steady_timer pause(state->core);
  while (!state->stopping) {
    boost::system::error_code code;
    auto socket = co_await acceptor.async_accept(quiet(code));
    if (state->stopping || code == asio::error::operation_aborted) break;
    if (code) {  // descriptors ran out: let some be returned
      log::room("admin").warn("cannot accept a connection: {}", code.message());
      pause.expires_after(std::chrono::milliseconds(100));
      co_await pause.async_wait(quiet(code));
      continue;
    }
    auto stream = std::make_shared<Stream<Protocol>>(std::move(socket));
    const std::uint64_t id = state->next++;
    const bool full = state->closers.size() >= static_cast<std::size_t>(state->settings.most_connections);
    state->closers[id] = [weak = std::weak_ptr(stream)] {
      if (auto alive = weak.lock()) alive->close();
    };
    asio::co_spawn(state->core, serve(state, stream, id, full), fatal);
  }
  --state->loops;
  state->changed.cancel();
}

}  // namespace

Result<std::unique_ptr<Server>> Server::open(asio::any_io_executor core, ServerSettings settings, Backstage backstage) {
  if (!settings.socket_group.empty()) {
    DRIFTD_TRY(const std::uint32_t gid, group_id(settings.socket_group));
    settings.permit.gids.push_back(gid);
  }
  auto state = std::make_shared<State>(core, std::move(settings), std::move(backstage));
  DRIFTD_TRY(const int local, listen_unix(state->settings.socket, state->settings.socket_group));
  state->local.assign(Local(), local);
  std::unique_ptr<Server> server(new Server(state));
  if (state->settings.listen.empty()) return server;
  DRIFTD_TRY(const int tcp, listen_loopback(state->settings.listen));
  state->tcp.assign(state->settings.listen.starts_with("[") ? Tcp::v6() : Tcp::v4(), tcp);
  return server;
}

Server::Server(std::shared_ptr<State> state) : state_(std::move(state)) {}

Server::~Server() {
  if (state_->local.is_open()) ::unlink(state_->settings.socket.c_str());
}

void Server::start() {
  state_->loops = 1;
  asio::co_spawn(state_->core, accept(state_, state_->local), fatal);
  if (!state_->tcp.is_open()) return;
  ++state_->loops;
  asio::co_spawn(state_->core, accept(state_, state_->tcp), fatal);
}

Task<void> Server::stop() {
  auto state = state_;
  state->stopping = true;
  state->api.stop();
  boost::system::error_code ignored;  // closing what is closed
  if (state->local.is_open()) ::unlink(state->settings.socket.c_str());
  state->local.close(ignored);
  state->tcp.close(ignored);
  const auto closers = state->closers;
  for (const auto& [id, close] : closers) close();
  while (state->loops > 0 || !state->closers.empty()) {
    state->changed.expires_after(std::chrono::seconds(1));
    co_await state->changed.async_wait(quiet(ignored));
  }
}

int Server::port() const {
  boost::system::error_code code;
  const auto endpoint = state_->tcp.local_endpoint(code);
  return code ? 0 : endpoint.port();
}

}  // namespace driftd::admin
