// SPDX-License-Identifier: Apache-2.0
#include "sinks/webhook/http.hpp"

#include <curl/curl.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <thread>

#include "base/log.hpp"

namespace driftd::sinks {
namespace {

constexpr std::size_t kMaxBody = 64 << 10;  // bytes
constexpr std::size_t kMaxHead = 64 << 10;  // bytes
constexpr std::int64_t kMaxRetryAfterMs = 3'600'000;

struct Transfer {
  HttpPost request;
  HttpSender::Done done;
  const AddressGuard* guard = nullptr;     ///< null: the proxy chooses the address
  std::shared_ptr<const TlsMaterial> tls;  ///< lent to libcurl
  CURL* easy = nullptr;
  curl_slist* headers = nullptr;
  std::size_t received = 0, head_bytes = 0;
  bool answered = false;  ///< the head of the final answer is complete
  std::string refusal, warning;
  char error[CURL_ERROR_SIZE] = {};

  ~Transfer() {
    if (easy != nullptr) curl_easy_cleanup(easy);
    curl_slist_free_all(headers);
  }
};

/// Checks the address here, because it is only known after every form of name and number was resolved.
curl_socket_t open_socket(void* closure, curlsocktype, curl_sockaddr* address) {
  auto& transfer = *static_cast<Transfer*>(closure);
  const std::string why = transfer.guard == nullptr ? "" : transfer.guard->refusal(&address->addr);
  transfer.refusal = why.empty() ? "" : "refused to connect: " + why;  // the reason for the last address
  if (!why.empty()) return CURL_SOCKET_BAD;
  return ::socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

std::size_t drop_body(char*, std::size_t size, std::size_t count, void* closure) {
  auto& transfer = *static_cast<Transfer*>(closure);
  transfer.received += size * count;
  return transfer.received > kMaxBody ? 0 : size * count;  // 0 ends the transfer; the status is known by now
}

/// Limits the head of the answer, including interim answers (1xx), because libcurl keeps all of it until the answer is
/// complete.
std::size_t take_head(char* line, std::size_t size, std::size_t count, void* closure) {
  auto& transfer = *static_cast<Transfer*>(closure);
  transfer.head_bytes += size * count;
  const std::string_view text(line, size * count);
  long status = 0;
  curl_easy_getinfo(transfer.easy, CURLINFO_RESPONSE_CODE, &status);
  if ((text == "\r\n" || text == "\n") && status >= 200) transfer.answered = true;
  if (transfer.head_bytes <= kMaxHead) return size * count;
  transfer.refusal = "the head of the answer has more than 64 KiB";
  return 0;
}

bool about_endpoint(CURLcode code) {
  switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_URL_MALFORMAT:
      return true;
    default:
      return false;
  }
}

template <class V>
void set(CURL* easy, CURLoption option, V value) {
  curl_easy_setopt(easy, option, value);
}

/// Lends the bytes to libcurl, which compares them before it uses a connection again: new files, new connections.
void lend(CURL* easy, CURLoption option, const std::string& bytes) {
  if (bytes.empty()) return;
  curl_blob blob{const_cast<char*>(bytes.data()), bytes.size(), CURL_BLOB_NOCOPY};
  curl_easy_setopt(easy, option, &blob);
}

void set_route(Transfer& transfer, const HttpRoute& route) {
  CURL* easy = transfer.easy;
  set(easy, CURLOPT_PROXY, route.proxy.c_str());  // an empty one also means: not that of the environment
  set(easy, CURLOPT_NOPROXY, route.proxy.empty() ? "*" : "");
  set(easy, CURLOPT_HTTPPROXYTUNNEL, 1L);
  set(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);  // else the head of the proxy's answer would be taken for the answer
  if (!transfer.tls) return;
  lend(easy, CURLOPT_CAINFO_BLOB, transfer.tls->ca);
  lend(easy, CURLOPT_SSLCERT_BLOB, transfer.tls->cert);
  lend(easy, CURLOPT_SSLKEY_BLOB, transfer.tls->key);
}

void prepare(Transfer& transfer) {
  CURL* easy = transfer.easy = curl_easy_init();
  const HttpPost& request = transfer.request;
  const bool https = request.url.rfind("https://", 0) == 0;
  for (const auto& [name, value] : request.headers) {
    transfer.headers = curl_slist_append(transfer.headers, (name + ": " + value).c_str());
  }
  transfer.headers = curl_slist_append(transfer.headers, "Expect:");
  set(easy, CURLOPT_PROTOCOLS_STR, https ? "https" : "http");
  set(easy, CURLOPT_REDIR_PROTOCOLS_STR, "");
  set(easy, CURLOPT_FOLLOWLOCATION, 0L);
  // over HTTP/2 all requests would share one connection, and what one answer does to it would hit the others
  set(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  set(easy, CURLOPT_NETRC, static_cast<long>(CURL_NETRC_IGNORED));
  set(easy, CURLOPT_NOSIGNAL, 1L);
  set(easy, CURLOPT_URL, request.url.c_str());
  set(easy, CURLOPT_HTTPHEADER, transfer.headers);
  set(easy, CURLOPT_POST, 1L);
  set(easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
  set(easy, CURLOPT_POSTFIELDS, request.body.data());
  set(easy, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(request.connect_timeout.count()));
  set(easy, CURLOPT_TIMEOUT_MS, static_cast<long>(request.total_timeout.count()));
  set(easy, CURLOPT_OPENSOCKETFUNCTION, &open_socket);
  set(easy, CURLOPT_OPENSOCKETDATA, &transfer);
  set(easy, CURLOPT_WRITEFUNCTION, &drop_body);
  set(easy, CURLOPT_WRITEDATA, &transfer);
  set(easy, CURLOPT_HEADERFUNCTION, &take_head);
  set(easy, CURLOPT_HEADERDATA, &transfer);
  set(easy, CURLOPT_ERRORBUFFER, transfer.error);
}

/// Returns true if the request was not sent: no connection, no TLS session, or a proxy that refuses.
bool never_sent(const Transfer& transfer, CURLcode code) {
  curl_off_t sent = 0;
  long proxy_status = 0;
  curl_easy_getinfo(transfer.easy, CURLINFO_PRETRANSFER_TIME_T, &sent);
  curl_easy_getinfo(transfer.easy, CURLINFO_HTTP_CONNECTCODE, &proxy_status);
  if (code == CURLE_OK) return false;
  return about_endpoint(code) || sent == 0 || (proxy_status != 0 && proxy_status / 100 != 2);
}

HttpAnswer answer_of(Transfer& transfer, CURLcode code) {
  HttpAnswer answer;
  answer.warning = std::move(transfer.warning);
  const bool too_large = transfer.head_bytes > kMaxHead;
  // How the body ends does not change what the head says. libcurl also takes a head that is cut off for an answer.
  if (transfer.answered && !too_large) {
    curl_easy_getinfo(transfer.easy, CURLINFO_RESPONSE_CODE, &answer.status);
    curl_off_t seconds = 0;
    curl_easy_getinfo(transfer.easy, CURLINFO_RETRY_AFTER, &seconds);
    // a date in the past gives a negative number
    answer.retry_after_ms = std::clamp<std::int64_t>(seconds, 0, kMaxRetryAfterMs / 1000) * 1000;
    return answer;
  }
  answer.about_endpoint = never_sent(transfer, code);
  answer.failure = transfer.error[0] != '\0' ? transfer.error : curl_easy_strerror(code);
  if (code == CURLE_OK) answer.failure = "the connection ended within the head of the answer";
  if (!transfer.refusal.empty()) answer.failure = transfer.refusal;
  return answer;
}

HttpAnswer no_answer(std::string why) {
  HttpAnswer answer;
  answer.about_endpoint = true;
  answer.failure = std::move(why);
  return answer;
}

}  // namespace

struct HttpSender::Loop {
  explicit Loop(HttpRoute r)
      : route(std::move(r)),
        files(route.tls),
        multi(curl_multi_init()),
        thread([this] { run(); }) {}

  void run() {
    if (const auto first = files.current(); !first) log::room("delivery").error("webhook: {}", first.error().message);
    while (!stopping) {
      take_queued();
      int running = 0;
      curl_multi_perform(multi, &running);
      finish();
      curl_multi_poll(multi, nullptr, 0, 1'000, nullptr);
    }
    for (auto& [easy, transfer] : active) {
      curl_multi_remove_handle(multi, easy);
      transfer->done(no_answer("the sink was stopped"));
    }
    active.clear();
    for (auto& transfer : queued) transfer->done(no_answer("the sink was stopped"));
  }
  void take_queued() {
    std::vector<std::unique_ptr<Transfer>> taken;
    {
      const std::lock_guard lock(mutex);
      taken.swap(queued);
    }
    for (auto& transfer : taken) {
      auto tls = files.current();
      if (!tls) {
        transfer->done(no_answer(tls.error().message));
        continue;
      }
      transfer->tls = std::move(*tls);
      transfer->warning = files.fault();
      transfer->guard = route.proxy.empty() ? &route.guard : nullptr;
      prepare(*transfer);
      set_route(*transfer, route);
      curl_multi_add_handle(multi, transfer->easy);
      active[transfer->easy] = std::move(transfer);
    }
  }
  void finish() {
    int left = 0;
    while (CURLMsg* message = curl_multi_info_read(multi, &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      const CURLcode code = message->data.result;
      curl_multi_remove_handle(multi, message->easy_handle);
      auto transfer = std::move(active.extract(message->easy_handle).mapped());
      transfer->done(answer_of(*transfer, code));
    }
  }

  const HttpRoute route;
  TlsFiles files;
  CURLM* multi;
  std::mutex mutex;
  std::vector<std::unique_ptr<Transfer>> queued;  ///< guarded by mutex
  std::map<CURL*, std::unique_ptr<Transfer>> active;
  std::atomic<bool> stopping{false};
  std::thread thread;  // last: it uses the others
};

HttpSender::HttpSender(HttpRoute route) : loop_(std::make_unique<Loop>(std::move(route))) {}

HttpSender::~HttpSender() {
  loop_->stopping = true;
  curl_multi_wakeup(loop_->multi);
  loop_->thread.join();
  curl_multi_cleanup(loop_->multi);
}

void HttpSender::post(HttpPost request, Done done) {
  auto transfer = std::make_unique<Transfer>();
  transfer->request = std::move(request);
  transfer->done = std::move(done);
  {
    const std::lock_guard lock(loop_->mutex);
    loop_->queued.push_back(std::move(transfer));
  }
  curl_multi_wakeup(loop_->multi);
}

}  // namespace driftd::sinks
