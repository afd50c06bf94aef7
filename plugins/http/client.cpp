// SPDX-License-Identifier: Apache-2.0
#include "http/client.hpp"

#include <curl/curl.h>
#include <algorithm>
#include <mutex>
#include <utility>

#include "http/exchange.hpp"

namespace driftd::http {
namespace {

using std::chrono::milliseconds;

CURLM* begin() {
  static std::once_flag once;  // libcurl counts its users; this one stays
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
  CURLM* multi = curl_multi_init();
  if (multi == nullptr) throw sdk::Failure(DRIFTD_INTERNAL, "no memory for an HTTP client");
  curl_multi_setopt(multi, CURLMOPT_PIPELINING, static_cast<long>(CURLPIPE_MULTIPLEX));
  return multi;
}

std::string origin_of(const std::string& text) {
  const std::unique_ptr<CURLU, decltype(&curl_url_cleanup)> url(curl_url(), curl_url_cleanup);
  if (curl_url_set(url.get(), CURLUPART_URL, text.c_str(), 0) != CURLUE_OK) return {};
  std::string out;
  for (const CURLUPart part : {CURLUPART_SCHEME, CURLUPART_HOST, CURLUPART_PORT}) {
    char* value = nullptr;
    if (curl_url_get(url.get(), part, &value, CURLU_DEFAULT_PORT) != CURLUE_OK) return {};
    out += std::string(value) + ' ';
    curl_free(value);
  }
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return std::tolower(c); });
  return out;
}

bool is_redirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

}  // namespace

MultiClient::MultiClient(Options options)
    : options_(std::move(options)),
      connection_guard_(options_.on_connection),
      multi_(begin()) {}

MultiClient::~MultiClient() { end(); }

void MultiClient::end() {
  for (const auto& [id, exchange] : exchanges_) curl_multi_remove_handle(multi_, exchange->easy());
  exchanges_.clear();
  curl_multi_cleanup(multi_);
}

void MultiClient::reset() {
  CURLM* fresh = begin();
  end();
  multi_ = fresh;
  connection_guard_.forget();
}

std::uint64_t MultiClient::start(sdk::Call& call, Request request) {
  auto exchange = std::make_unique<Exchange>(call, options_, connection_guard_, std::move(request));
  const std::uint64_t id = ++last_;
  curl_easy_setopt(exchange->easy(), CURLOPT_PRIVATE, reinterpret_cast<void*>(id));
  CURL* const easy = exchange->easy();
  exchanges_.emplace(id, std::move(exchange));
  if (curl_multi_add_handle(multi_, easy) == CURLM_OK) return id;
  exchanges_.erase(id);
  throw sdk::Failure(DRIFTD_INTERNAL, "no memory for an HTTP request");
}

void MultiClient::abort(std::uint64_t id) {
  const auto found = exchanges_.find(id);
  if (found == exchanges_.end()) return;
  curl_multi_remove_handle(multi_, found->second->easy());
  exchanges_.erase(found);
}

std::vector<MultiClient::Completion> MultiClient::reap() {
  std::vector<Completion> out;
  int left = 0;
  while (const CURLMsg* message = curl_multi_info_read(multi_, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    void* id = nullptr;
    const CURLcode result = message->data.result;  // the message dies with its handle
    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &id);
    Completion& ended = out.emplace_back();
    ended.id = reinterpret_cast<std::uint64_t>(id);
    const auto exchange = std::move(exchanges_.at(ended.id));
    exchanges_.erase(ended.id);
    curl_multi_remove_handle(multi_, exchange->easy());
    try {
      ended.response = exchange->response(result);
    } catch (const sdk::Failure& failure) {
      ended.failure = failure;
    }
  }
  const auto refusal = connection_guard_.take_refusal();
  if (!refusal) return out;
  // Waiting requests would each make a connection and be checked, one after the other.
  for (auto at = exchanges_.begin(); at != exchanges_.end();) {
    const auto next = std::next(at);
    if (at->second->waits()) {
      out.push_back({at->first, {}, refusal});
      abort(at->first);
    }
    at = next;
  }
  return out;
}

void MultiClient::wait(sdk::Call& call, milliseconds max_wait) {
  curl_waitfd cancel{call.cancel_fd(), CURL_WAIT_POLLIN, 0};
  const bool blind = cancel.fd < 0;  // no descriptor: poll
  const auto slice = blind ? std::min(max_wait, milliseconds(100)) : max_wait;
  curl_multi_poll(multi_, blind ? nullptr : &cancel, blind ? 0 : 1, static_cast<int>(slice.count()), nullptr);
}

std::vector<MultiClient::Completion> MultiClient::run(sdk::Call& call, Steady::time_point until) {
  const Steady::time_point deadline{std::chrono::nanoseconds(call.deadline_ns())};
  while (true) {
    if (call.cancelled()) throw sdk::Failure(DRIFTD_CANCELLED, "cancelled while waiting for HTTP");
    int running = 0;
    if (curl_multi_perform(multi_, &running) != CURLM_OK) throw sdk::Failure(DRIFTD_INTERNAL, "libcurl cannot go on");
    auto ended = reap();
    const auto now = Steady::now();
    if (std::exchange(woken_, false) || !ended.empty() || now >= until) return ended;
    if (now >= deadline) throw sdk::Failure(DRIFTD_DEADLINE, "no answer over HTTP before the deadline of the call");
    const auto left = std::chrono::ceil<milliseconds>(std::min(until, deadline) - now);
    wait(call, std::clamp(left, milliseconds(1), milliseconds(60'000)));
  }
}

Response Client::once(sdk::Call& call, const Request& request) {
  const std::uint64_t id = multi_client_.start(call, request);
  try {
    while (true) {
      auto ended = multi_client_.run(call, MultiClient::Steady::time_point::max());
      if (ended.empty()) continue;
      if (ended.front().failure) throw *ended.front().failure;
      return std::move(ended.front().response);
    }
  } catch (const sdk::Failure& failure) {
    multi_client_.abort(id);
    if (failure.code == DRIFTD_UNAVAILABLE) multi_client_.reset();  // HTTP/2 would keep using a dead connection
    const bool bare = failure.code == DRIFTD_CANCELLED || failure.code == DRIFTD_DEADLINE;
    if (bare) throw sdk::Failure(failure.code, name_of(request) + ": " + failure.what());
    throw;
  } catch (...) {
    multi_client_.abort(id);
    throw;
  }
}

Response Client::send(sdk::Call& call, const Request& request) {
  const bool follows = request.method == "GET" || request.method == "HEAD";
  Response response = once(call, request);
  Request next = request;
  for (int i = 0; follows && i < request.redirects && is_redirect(response.status); ++i) {
    if (response.redirect_url.empty()) break;
    if (origin_of(response.redirect_url) != origin_of(request.url)) {
      throw sdk::Failure(DRIFTD_INVALID, name_of(request) +
                                             ": is redirected to another host, which is not followed; if "
                                             "that host is intended, set it in the settings");
    }
    next.url = response.redirect_url;
    response = once(call, next);
  }
  for (auto& header : next.headers) wipe(header);
  wipe(next.body);
  return response;
}

}  // namespace driftd::http
