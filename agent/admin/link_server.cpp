// SPDX-License-Identifier: Apache-2.0
#include "admin/link_server.hpp"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <map>

#include "admin/listen.hpp"
#include "base/fatal.hpp"
#include "base/log.hpp"
#include "base/rate_limiter.hpp"

namespace driftd::admin {
namespace {

namespace link_beast = boost::beast;
namespace link_http = link_beast::http;
using LinkTcp = asio::ip::tcp;
using LinkStream = link_beast::basic_stream<LinkTcp, asio::any_io_executor>;
using LinkRequest = link_http::request<link_http::string_body>;
using LinkResponse = link_http::response<link_http::string_body>;

constexpr std::size_t kMaxForm = 4'096;  // bytes

auto noting(boost::system::error_code& code) { return asio::redirect_error(asio::use_awaitable, code); }

/// Returns what stands behind the last `/l/` of a target, whatever a proxy puts in front of it. Empty optional: there
/// is no such path.
std::optional<std::string> token_of(std::string_view target) {
  target = target.substr(0, target.find_first_of("?#"));
  const auto at = target.rfind("/l/");
  if (at == std::string_view::npos) return std::nullopt;
  return std::string(target.substr(at + 3));
}

LinkPage short_page(int status, const std::string& text) {
  return {status,
          "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>driftd</title></head><body><p>" +
              text + "</p></body></html>\n"};
}

/// No script runs, nothing else is loaded, no other site may show the page in a frame, and the browser sends its
/// address to no other page.
LinkResponse to_http(LinkPage page, const LinkRequest& request) {
  LinkResponse out{static_cast<link_http::status>(page.status), request.version()};
  out.set(link_http::field::content_type, "text/html; charset=utf-8");
  out.set(link_http::field::cache_control, "no-store");
  out.set("Content-Security-Policy", "default-src 'none'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'");
  out.set("Referrer-Policy", "no-referrer");
  out.set("X-Content-Type-Options", "nosniff");
  out.set("X-Frame-Options", "DENY");
  out.set("X-Robots-Tag", "noindex, nofollow");
  if (page.status == 429 || page.status == 503) out.set(link_http::field::retry_after, "10");
  if (page.status == 405) out.set(link_http::field::allow, "GET, HEAD, POST");
  out.keep_alive(false);
  const std::size_t size = page.html.size();
  const bool head = request.method() == link_http::verb::head;
  if (!head) out.body() = std::move(page.html);
  out.prepare_payload();
  if (head) out.content_length(size);
  return out;
}

}  // namespace

struct LinkServer::State {
  State(asio::any_io_executor executor, LinkServerSettings given, LinkDependencies deps)
      : core(executor),
        settings(std::move(given)),
        pages(deps),
        limiter(settings.pace, settings.burst),
        changed(core) {}

  Task<LinkPage> answer(LinkRequest request);

  asio::any_io_executor core;
  LinkServerSettings settings;
  LinkPages pages;
  RateLimiter limiter;
  asio::basic_socket_acceptor<LinkTcp, asio::any_io_executor> tcp{core};
  asio::steady_timer changed;  ///< cancelled when a connection or the acceptor ends
  std::map<std::uint64_t, std::weak_ptr<LinkStream>> open;
  std::uint64_t next = 0;
  bool accepting = false, stopping = false;
};

Task<LinkPage> LinkServer::State::answer(LinkRequest request) {
  const auto token = token_of({request.target().data(), request.target().size()});
  if (!token) co_return short_page(404, "There is no such page.");
  const auto method = request.method();
  const bool reads = method == link_http::verb::get || method == link_http::verb::head;
  if (!reads && method != link_http::verb::post) co_return short_page(405, "Open the link with a browser.");
  if (!limiter.try_take(RateLimiter::Clock::now())) {
    co_return short_page(429, "Too many links are opened at the moment. Nothing was decided; try again in a minute.");
  }
  if (reads) {
    std::string asked = *token;
    LinkPage out = co_await pages.show(std::move(asked));
    co_return out;
  }
  if (!request[link_http::field::content_type].starts_with("application/x-www-form-urlencoded")) {
    co_return short_page(415, "Open the link with a browser, and use its button.");
  }
  std::string body = std::move(request.body());
  LinkPage out = co_await pages.decide(std::move(body));
  co_return out;
}

namespace {

template <class StatePtr>
Task<void> serve_link(StatePtr state, std::shared_ptr<LinkStream> stream, std::uint64_t id) {
  link_beast::flat_buffer buffer(16 * 1024 + kMaxForm);
  link_http::request_parser<link_http::string_body> parser;
  parser.header_limit(8 * 1024);
  parser.body_limit(kMaxForm);
  boost::system::error_code code;
  stream->expires_after(state->settings.timeout);
  co_await link_http::async_read(*stream, buffer, parser, noting(code));
  LinkPage page = short_page(400, "This request cannot be read.");
  LinkRequest head;
  if (!code) {
    LinkRequest request = parser.release();
    head = LinkRequest(request.base());
    stream->expires_never();
    page = co_await state->answer(std::move(request));
  }
  const bool answerable =
      !code || code.category() == link_http::make_error_code(link_http::error::body_limit).category();
  if (answerable && code != link_http::error::end_of_stream) {
    LinkResponse response = to_http(std::move(page), head);
    stream->expires_after(state->settings.timeout);
    co_await link_http::async_write(*stream, response, noting(code));
  }
  boost::system::error_code ignored;  // the client may have closed it already
  stream->socket().shutdown(asio::socket_base::shutdown_both, ignored);
  state->open.erase(id);
  state->changed.cancel();
}

template <class StatePtr>
Task<void> accept_links(StatePtr state) {
  asio::steady_timer pause(state->core);
  while (!state->stopping) {
    boost::system::error_code code;
    auto socket = co_await state->tcp.async_accept(noting(code));
    if (state->stopping || code == asio::error::operation_aborted) break;
    if (code) {  // out of descriptors: wait until some are closed
      log::room("admin").warn("cannot accept a connection for a link: {}", code.message());
      pause.expires_after(std::chrono::milliseconds(100));
      co_await pause.async_wait(noting(code));
      continue;
    }
    if (state->open.size() >= state->settings.max_connections) continue;  // its destructor closes it
    auto stream = std::make_shared<LinkStream>(std::move(socket));
    const std::uint64_t id = state->next++;
    state->open[id] = stream;
    asio::co_spawn(state->core, serve_link(state, std::move(stream), id), fatal);
  }
  state->accepting = false;
  state->changed.cancel();
}

}  // namespace

Result<std::unique_ptr<LinkServer>> LinkServer::open(asio::any_io_executor core, LinkServerSettings settings,
                                                     LinkDependencies deps) {
  auto state = std::make_shared<State>(core, std::move(settings), deps);
  DRIFTD_TRY(const int tcp, listen_loopback(state->settings.listen, "notifications.links.listen"));
  state->tcp.assign(state->settings.listen.starts_with("[") ? LinkTcp::v6() : LinkTcp::v4(), tcp);
  return std::unique_ptr<LinkServer>(new LinkServer(state));
}

LinkServer::LinkServer(std::shared_ptr<State> state) : state_(std::move(state)) {}
LinkServer::~LinkServer() = default;

void LinkServer::start() {
  state_->accepting = true;
  asio::co_spawn(state_->core, accept_links(state_), fatal);
}

Task<void> LinkServer::stop() {
  auto state = state_;
  state->stopping = true;
  boost::system::error_code ignored;  // it may be closed already
  state->tcp.close(ignored);
  for (const auto& [id, weak] : state->open) {
    if (const auto stream = weak.lock()) stream->close();
  }
  while (state->accepting || !state->open.empty()) {
    state->changed.expires_after(std::chrono::seconds(1));
    co_await state->changed.async_wait(noting(ignored));
  }
}

Task<void> LinkServer::audit_unwritten_denials(bool all) {
  const auto state = state_;
  co_await state->pages.audit_unwritten_denials(all);
}

int LinkServer::port() const {
  boost::system::error_code code;
  const auto endpoint = state_->tcp.local_endpoint(code);
  return code ? 0 : endpoint.port();
}

}  // namespace driftd::admin
