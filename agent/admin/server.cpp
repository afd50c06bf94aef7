// SPDX-License-Identifier: Apache-2.0
#include "admin/server.hpp"

#include <unistd.h>
#include <algorithm>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <optional>

#include "admin/connections.hpp"
#include "admin/listen.hpp"
#include "base/escape.hpp"
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

/// A connected client: on the Unix socket with credentials, on the port without.
struct Client {
  bool unix_socket = false;
  Result<Peer> peer;
  Access access = Access::none;
  std::optional<std::uint32_t> login_uid = {};  ///< uid of the login; read at once, because the process may end
  std::string login = {};                       ///< `loginuid:alice`; empty: not known to the kernel
};

Client identify(Stream<Local>& stream, const AccessPolicy& policy) {
  Client out{true, read_peer(stream.socket().native_handle())};
  if (!out.peer) return out;
  out.access = policy.access(*out.peer);
  out.login_uid = read_login_uid(out.peer->pid);
  return out;
}
Client identify(Stream<Tcp>&, const AccessPolicy&) { return {false, fail(Code::denied, "no peer on TCP")}; }

/// Returns what the audit log records about the caller: the user is reported by the kernel; the person behind that user
/// is only claimed.
core::Caller caller_of(const Client& client, std::string_view sudo_user) {
  core::Caller out{client.peer->uid, client.peer->gid, client.peer->pid, client.login};
  constexpr std::string_view kNameCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-@+";
  const bool name = !sudo_user.empty() && sudo_user.size() <= 64 &&
                    sudo_user.find_first_not_of(kNameCharacters) == std::string_view::npos;
  if (out.claimed.empty() && name) out.claimed = "SUDO_USER:" + std::string(sudo_user);
  return out;
}

HttpResponse to_http(Response from, const HttpRequest& request) {
  HttpResponse out{static_cast<http::status>(from.status), request.version()};
  out.set(http::field::content_type, from.type);
  out.set(http::field::cache_control, "no-store");
  out.set(http::field::server, "driftd");
  if (from.retry_after > 0) out.set(http::field::retry_after, std::to_string(from.retry_after));
  out.keep_alive(request.keep_alive());
  const bool head = request.method() == http::verb::head;
  if (!from.secret) from.body = valid_utf8(std::move(from.body));
  const std::size_t size = from.body.size();
  if (!head) out.body() = std::move(from.body);
  out.prepare_payload();
  if (head) out.content_length(size);
  return out;
}

}  // namespace

struct Server::State {
  State(asio::any_io_executor executor, ServerSettings given, ApiDependencies deps)
      : core(executor),
        settings(std::move(given)),
        api(executor, std::move(deps)),
        changed(core) {
    names->find = settings.user_name;
  }

  asio::any_io_executor core;
  ServerSettings settings;
  Api api;
  std::shared_ptr<AnswerMemory> answer_memory = std::make_shared<AnswerMemory>();
  std::shared_ptr<UserNames> names = std::make_shared<UserNames>();
  asio::basic_socket_acceptor<Local, asio::any_io_executor> local{core};
  asio::basic_socket_acceptor<Tcp, asio::any_io_executor> tcp{core};
  asio::steady_timer changed;  ///< cancelled when a connection or acceptor ends
  Connections connections{settings};
  int loops = 0;
  bool stopping = false;

  std::shared_ptr<MemoryShare> share_of(const Client& client) const;
};

std::shared_ptr<MemoryShare> Server::State::share_of(const Client& client) const {
  const bool owner = client.peer && is_owner(*client.peer);
  const std::size_t reserved = owner ? 0 : std::min(settings.max_answer_bytes, settings.reserved_answer_bytes);
  return std::make_shared<MemoryShare>(answer_memory, settings.max_answer_bytes - reserved);
}

namespace {

template <class StatePtr>
Task<Response> answer(StatePtr state, HttpRequest request, const Client& client, std::shared_ptr<MemoryShare> share) {
  if (!client.unix_socket && !is_loopback_host(request[http::field::host])) {
    const Error denied{Code::denied, "the Host header must name this machine's loopback"};
    std::string actor = "(port)", asked = "Host " + std::string(request[http::field::host]);
    core::Caller nobody;  // named, all of them: g++ 12 destroys temporaries of a co_await expression twice
    co_await state->api.audit_denial(std::move(actor), std::move(nobody), std::move(asked), denied);
    co_return error_response(denied);
  }
  auto parsed = parse_target(request.target());
  if (!parsed) co_return error_response(parsed.error());
  parsed->method = std::string(request.method_string());
  parsed->body = std::move(request.body());
  parsed->share = std::move(share);
  if (client.unix_socket) {
    parsed->actor = client.peer->name;
    parsed->caller = caller_of(client, request["Driftd-Sudo-User"]);
    parsed->gids = client.peer->groups;
    parsed->gids.push_back(client.peer->gid);
    parsed->may_decide = client.access == Access::decide;
    Response out = co_await state->api.handle(std::move(*parsed));
    co_return out;
  }
  Response out = co_await state->api.probe(std::move(*parsed));
  co_return out;
}

/// Returns why this client may not use the API at all. Empty if it may.
template <class StatePtr>
std::optional<Error> denial_reason(const StatePtr& state, const Client& client) {
  if (!client.unix_socket) return std::nullopt;
  if (!client.peer) return client.peer.error();
  if (state->settings.is_worker && state->settings.is_worker(client.peer->pid)) {
    return Error{Code::denied, "a plugin may not use the API of its agent"};
  }
  if (client.access != Access::none) return std::nullopt;
  return Error{Code::denied,
               "user " + client.peer->name +
                   " may not use this agent's API; ask for membership in admin.read_group or admin.decide_group"};
}

template <class Protocol>
Task<bool> send(Stream<Protocol>& stream, HttpResponse response, bool secret = false) {
  boost::system::error_code code;
  const bool keep = response.keep_alive();
  co_await http::async_write(stream, response, quiet(code));
  if (secret) wipe(response.body());
  co_return !code && keep;
}

Response refusal(const boost::system::error_code& code) {
  if (code == http::error::body_limit)
    return {413, error_response({Code::invalid, "the request body is too big"}).body};
  return error_response({Code::invalid, "not readable as HTTP/1.1: " + code.message()});
}

/// Reads and answers one request. Returns false if the connection is to be closed.
template <class StatePtr, class Protocol>
Task<bool> serve_one(StatePtr state, Stream<Protocol>& stream, beast::flat_buffer& buffer, const Client& client,
                     std::uint64_t id, bool first) {
  http::request_parser<http::string_body> parser;
  parser.header_limit(16 * 1024);
  parser.body_limit(state->settings.max_body);
  boost::system::error_code code;
  const auto arrival = client.unix_socket ? state->settings.read_timeout : state->settings.port_timeout;
  stream.expires_after(first ? arrival : state->settings.idle_timeout);
  co_await http::async_read_header(stream, buffer, parser, quiet(code));
  if (!first) stream.expires_after(arrival);
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
  state->connections.set_asking(id, true);
  HttpRequest request = parser.release();
  HttpRequest head = HttpRequest(request.base());
  std::shared_ptr<MemoryShare> share = state->share_of(client);
  std::shared_ptr<MemoryShare> lent = share;
  Response out = co_await answer(state, std::move(request), client, std::move(lent));
  // A change that was made is always answered, and so is the port, whose answers are few. POST /v1/explain changes
  // nothing.
  const bool is_change = head.method() == http::verb::post && head.target().rfind("/v1/explain", 0) != 0;
  fit_answer(out, *share, !client.unix_socket || is_change);
  const bool secret = out.secret;
  HttpResponse response = to_http(std::move(out), head);
  // the port serves one request for each connection
  if (state->stopping || !client.unix_socket) response.keep_alive(false);
  stream.expires_after(arrival);
  const bool more = co_await send(stream, std::move(response), secret);
  state->connections.set_asking(id, false);
  state->api.sent(share->peak());
  co_return more;
}

/// Sends the reason of a refusal, within two seconds.
template <class Protocol>
Task<void> send_refusal(Stream<Protocol>& stream, beast::flat_buffer& buffer, Error why) {
  // Read first: closing with an unread request would reset the connection before our answer arrives.
  http::request_parser<http::empty_body> unread;
  boost::system::error_code code;
  stream.expires_after(std::chrono::seconds(1));
  co_await http::async_read_header(stream, buffer, unread, quiet(code));
  HttpResponse busy = to_http(error_response(why), HttpRequest{});
  busy.keep_alive(false);
  stream.expires_after(std::chrono::seconds(1));
  co_await send(stream, std::move(busy));
}

/// Looks up the names of the caller, which answers and audit lines need.
template <class StatePtr>
Task<void> look_up_names(StatePtr state, Client& client) {
  client.peer->name = co_await UserNames::of(state->names, client.peer->uid);
  if (!client.login_uid) co_return;
  const std::string logged_in = co_await UserNames::of(state->names, *client.login_uid);
  client.login = "loginuid:" + logged_in;
}

template <class StatePtr, class Protocol>
Task<void> serve(StatePtr state, std::shared_ptr<Stream<Protocol>> stream, std::uint64_t id, Client client,
                 std::optional<Error> refused) {
  beast::flat_buffer buffer(64 * 1024 + state->settings.max_body);
  if (client.peer) co_await look_up_names(state, client);
  if (auto named = denial_reason(state, client); named) refused = std::move(named);
  if (refused) co_await send_refusal(*stream, buffer, *refused);
  if (refused && refused->code == Code::denied && client.peer) {
    std::string asked = "the API";  // named: g++ 12 destroys temporaries of a co_await expression twice
    core::Caller caller = caller_of(client, {});
    co_await state->api.audit_denial(client.peer->name, std::move(caller), std::move(asked), *refused);
  }
  bool more = !refused;
  for (bool first = true; more; first = false) more = co_await serve_one(state, *stream, buffer, client, id, first);
  boost::system::error_code ignored;  // the client may have closed it already
  stream->socket().shutdown(asio::socket_base::shutdown_both, ignored);
  state->connections.erase(id);
  state->changed.cancel();
}

/// Decides at once whether a connection is served, so that none waits for a slot.
template <class StatePtr, class Protocol>
void admit(StatePtr state, std::shared_ptr<Stream<Protocol>> stream) {
  Client client = identify(*stream, state->settings.policy);
  Connection one;
  one.unix_socket = client.unix_socket;
  if (client.peer) {
    one.uid = client.peer->uid;
    one.owner = is_owner(*client.peer);
  }
  one.close = [weak = std::weak_ptr(stream)] {
    if (auto alive = weak.lock()) alive->close();
  };
  std::optional<Error> refused = denial_reason(state, client);
  if (!refused) refused = state->connections.overload_error(one);
  one.refused = refused.has_value();
  // Without a place among those that get a reason, the destructor of the stream closes it.
  if (one.refused && state->connections.refused() >= state->settings.max_refusals) return;
  const std::uint64_t id = state->connections.add(std::move(one));
  asio::co_spawn(state->core, serve(state, std::move(stream), id, std::move(client), std::move(refused)), fatal);
}

template <class StatePtr, class Acceptor>
Task<void> accept(StatePtr state, Acceptor& acceptor) {
  using Protocol = typename Acceptor::protocol_type;
  asio::steady_timer pause(state->core);
  while (!state->stopping) {
    boost::system::error_code code;
    auto socket = co_await acceptor.async_accept(quiet(code));
    if (state->stopping || code == asio::error::operation_aborted) break;
    if (code) {  // out of descriptors: wait until some are closed
      log::room("admin").warn("cannot accept a connection: {}", code.message());
      pause.expires_after(std::chrono::milliseconds(100));
      co_await pause.async_wait(quiet(code));
      continue;
    }
    admit(state, std::make_shared<Stream<Protocol>>(std::move(socket)));
  }
  --state->loops;
  state->changed.cancel();
}

/// Adds the gid of a named group; nothing if the name is empty.
Status add_group(std::vector<std::uint32_t>& to, const std::string& name, const std::string& key) {
  if (name.empty()) return {};
  DRIFTD_TRY(const std::uint32_t gid, group_id(name, key));
  to.push_back(gid);
  return {};
}

}  // namespace

Result<std::unique_ptr<Server>> Server::open(asio::any_io_executor core, ServerSettings settings,
                                             ApiDependencies deps) {
  // The file's mode can name one group only. If more are configured, everybody may connect and the peer's credentials
  // decide.
  const bool open = !settings.policy.uids.empty() || !settings.policy.gids.empty() || !settings.read_group.empty() ||
                    !settings.decide_group.empty();
  DRIFTD_CHECK(add_group(settings.policy.gids, settings.socket_group, "admin.socket_group"));
  DRIFTD_CHECK(add_group(settings.policy.read_gids, settings.read_group, "admin.read_group"));
  DRIFTD_CHECK(add_group(settings.policy.decide_gids, settings.decide_group, "admin.decide_group"));
  auto state = std::make_shared<State>(core, std::move(settings), std::move(deps));
  DRIFTD_TRY(const int local, listen_unix(state->settings.socket, state->settings.socket_group, open));
  state->local.assign(Local(), local);
  std::unique_ptr<Server> server(new Server(state));
  if (state->settings.listen.empty()) return server;
  DRIFTD_TRY(const int tcp, listen_loopback(state->settings.listen, "admin.listen"));
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
  boost::system::error_code ignored;  // it may be closed already
  if (state->local.is_open()) ::unlink(state->settings.socket.c_str());
  state->local.close(ignored);
  state->tcp.close(ignored);
  state->connections.close_all();
  while (state->loops > 0 || !state->connections.empty()) {
    state->changed.expires_after(std::chrono::seconds(1));
    co_await state->changed.async_wait(quiet(ignored));
  }
}

Task<void> Server::audit_unwritten_denials(bool all) {
  auto state = state_;
  co_await state->api.audit_unwritten_denials(all);
}

int Server::port() const {
  boost::system::error_code code;
  const auto endpoint = state_->tcp.local_endpoint(code);
  return code ? 0 : endpoint.port();
}

}  // namespace driftd::admin
