// SPDX-License-Identifier: Apache-2.0
#include "http/exchange.hpp"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <memory>

#include "driftd/sdk/call.hpp"

namespace driftd::http {
namespace {

constexpr std::size_t kErrorBody = 64u << 10;  // of an answer whose 2xx would have been streamed
constexpr std::size_t kHeaders = 256u << 10;
constexpr curl_off_t kRetryAfterMost = 3600;

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

std::string trimmed(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return std::string(text);
}

/// Returns true if a local certificate or key file could not be used.
bool is_local_file(CURLcode code) {
  return code == CURLE_SSL_CACERT_BADFILE || code == CURLE_SSL_CERTPROBLEM || code == CURLE_SSL_CRL_BADFILE;
}

std::string part(CURLU* url, CURLUPart which, unsigned flags = 0) {
  char* text = nullptr;
  if (curl_url_get(url, which, &text, flags) != CURLUE_OK) return {};
  std::string out = text;
  curl_free(text);
  return out;
}

using Url = std::unique_ptr<CURLU, decltype(&curl_url_cleanup)>;

Url parse_url(const std::string& text) {
  Url url(curl_url(), curl_url_cleanup);
  if (curl_url_set(url.get(), CURLUPART_URL, text.c_str(), 0) != CURLUE_OK) {
    throw sdk::Failure(DRIFTD_INVALID,
                       "the URL of a request is not valid; expected http://host[:port]/path or https://…");
  }
  if (!part(url.get(), CURLUPART_USER).empty() || !part(url.get(), CURLUPART_PASSWORD).empty()) {
    throw sdk::Failure(DRIFTD_INVALID, "a URL holds a user or a password; expected them in settings of their own");
  }
  return url;
}

void wipe_list(curl_slist* list) {
  for (curl_slist* at = list; at != nullptr; at = at->next) {
    volatile char* text = at->data;
    for (std::size_t i = std::strlen(at->data); i > 0; --i) text[i - 1] = 0;
  }
  curl_slist_free_all(list);
}

}  // namespace

Exchange::Exchange(sdk::Call& call, const Options& options, ConnectionGuard& guard, Request request)
    : call_(call),
      connection_guard_(guard),
      request_(std::move(request)),
      what_(name_of(request_)) {
  response_.sent_ns = call.now_ns();
  const Url checked = parse_url(request_.url);
  easy_ = curl_easy_init();
  if (easy_ == nullptr) throw sdk::Failure(DRIFTD_INTERNAL, what_ + ": no memory for a request");
  try {
    curl_easy_setopt(easy_, CURLOPT_URL, request_.url.c_str());
    curl_easy_setopt(easy_, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy_, CURLOPT_PROXY, "");
    curl_easy_setopt(easy_, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy_, CURLOPT_QUICK_EXIT, 1L);  // an end does not wait for a thread in getaddrinfo
    curl_easy_setopt(easy_, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(options.connect.count()));
    curl_easy_setopt(easy_, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(easy_, CURLOPT_TCP_KEEPIDLE, 30L);
    curl_easy_setopt(easy_, CURLOPT_TCP_KEEPINTVL, 10L);
    curl_easy_setopt(easy_, CURLOPT_HTTP_VERSION, options.http2 ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy_, CURLOPT_PIPEWAIT, options.http2 ? 1L : 0L);
    curl_easy_setopt(easy_, CURLOPT_ACCEPT_ENCODING, "gzip");
    curl_easy_setopt(easy_, CURLOPT_USERAGENT, options.user_agent.c_str());
    curl_easy_setopt(easy_, CURLOPT_ERRORBUFFER, error_);
    curl_easy_setopt(easy_, CURLOPT_HEADERFUNCTION, &on_header);
    curl_easy_setopt(easy_, CURLOPT_HEADERDATA, this);
    curl_easy_setopt(easy_, CURLOPT_WRITEFUNCTION, &on_body_bytes);
    curl_easy_setopt(easy_, CURLOPT_WRITEDATA, this);
    if (connection_guard_.needed()) {
      curl_easy_setopt(easy_, CURLOPT_PREREQFUNCTION, &begin_request);
      curl_easy_setopt(easy_, CURLOPT_PREREQDATA, this);
    }
    set_request();
    set_tls(options.tls);
    if (!options.tls.server_name.empty()) set_server_name(options.tls.server_name);
    curl_easy_setopt(easy_, CURLOPT_HTTPHEADER, headers_);
  } catch (...) {
    release();
    throw;
  }
}

Exchange::~Exchange() { release(); }

void Exchange::release() {
  curl_easy_cleanup(easy_);
  wipe_list(headers_);
  curl_slist_free_all(connect_to_);
  for (auto& header : request_.headers) wipe(header);
  wipe(request_.body);
}

void Exchange::add_header(const std::string& line) {
  if (line.find_first_of("\r\n") != std::string::npos) {
    throw sdk::Failure(DRIFTD_INVALID, what_ + ": a header holds a line break; expected `Name: value` of one line");
  }
  curl_slist* longer = curl_slist_append(headers_, line.c_str());
  if (longer == nullptr) throw sdk::Failure(DRIFTD_INTERNAL, what_ + ": no memory for a header");
  headers_ = longer;
}

void Exchange::set_request() {
  for (const auto& header : request_.headers) add_header(header);
  add_header("Expect:");  // no second round trip for a body
  if (request_.method == "HEAD") {
    curl_easy_setopt(easy_, CURLOPT_NOBODY, 1L);
  } else if (request_.method != "GET") {
    curl_easy_setopt(easy_, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request_.body.size()));
    curl_easy_setopt(easy_, CURLOPT_POSTFIELDS, request_.body.c_str());
    curl_easy_setopt(easy_, CURLOPT_CUSTOMREQUEST, request_.method.c_str());
  }
  curl_easy_setopt(easy_, CURLOPT_TIMEOUT_MS, static_cast<long>(request_.timeout.count()));
  if (request_.idle.count() > 0) {
    curl_easy_setopt(easy_, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(easy_, CURLOPT_LOW_SPEED_TIME, static_cast<long>(request_.idle.count()));
  }
}

void Exchange::set_blob(CURLoption option, const std::string& pem) {
  curl_blob blob{const_cast<char*>(pem.data()), pem.size(), CURL_BLOB_COPY};
  curl_easy_setopt(easy_, option, &blob);
}

void Exchange::set_tls(const Tls& tls) {
  curl_easy_setopt(easy_, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  curl_easy_setopt(easy_, CURLOPT_SSL_VERIFYPEER, tls.verify ? 1L : 0L);
  curl_easy_setopt(easy_, CURLOPT_SSL_VERIFYHOST, tls.verify ? 2L : 0L);
  if (!tls.ca_pem.empty() || !tls.ca_file.empty()) {
    curl_easy_setopt(easy_, CURLOPT_CAPATH, nullptr);  // else the system's CAs would be trusted beside it
    if (tls.ca_file.empty()) {
      set_blob(CURLOPT_CAINFO_BLOB, tls.ca_pem);
    } else {
      curl_easy_setopt(easy_, CURLOPT_CAINFO, tls.ca_file.c_str());
    }
  }
  if (!tls.certificate_file.empty()) curl_easy_setopt(easy_, CURLOPT_SSLCERT, tls.certificate_file.c_str());
  if (!tls.certificate_pem.empty()) set_blob(CURLOPT_SSLCERT_BLOB, tls.certificate_pem);
  if (!tls.key_file.empty()) curl_easy_setopt(easy_, CURLOPT_SSLKEY, tls.key_file.c_str());
  if (!tls.key_pem.empty()) set_blob(CURLOPT_SSLKEY_BLOB, tls.key_pem);
}

/// libcurl verifies the host of the URL. So the URL gets the server name, and the connection still goes to the original
/// host.
void Exchange::set_server_name(const std::string& name) {
  const Url url = parse_url(request_.url);
  const std::string host = part(url.get(), CURLUPART_HOST);
  const std::string port = part(url.get(), CURLUPART_PORT, CURLU_DEFAULT_PORT);
  add_header("Host: " + host + ":" + port);
  curl_url_set(url.get(), CURLUPART_HOST, name.c_str(), 0);
  curl_easy_setopt(easy_, CURLOPT_URL, part(url.get(), CURLUPART_URL).c_str());
  connect_to_ = curl_slist_append(nullptr, ("::" + host + ":" + port).c_str());
  curl_easy_setopt(easy_, CURLOPT_CONNECT_TO, connect_to_);
}

int Exchange::begin_request(void* self, char* to, char* from, int to_port, int from_port) noexcept {
  auto& exchange = *static_cast<Exchange*>(self);
  long made = 0;
  curl_easy_getinfo(exchange.easy_, CURLINFO_NUM_CONNECTS, &made);
  try {
    exchange.connection_guard_.check(exchange.call_, {to, from, to_port, from_port}, made > 0);
    exchange.sent_ = true;
    return CURL_PREREQFUNC_OK;
  } catch (...) {
    exchange.thrown_ = std::current_exception();
    curl_easy_setopt(exchange.easy_, CURLOPT_FORBID_REUSE, 1L);  // the connection ends with it
    return CURL_PREREQFUNC_ABORT;
  }
}

std::size_t Exchange::on_header(char* data, std::size_t size, std::size_t count, void* self) noexcept {
  auto& exchange = *static_cast<Exchange*>(self);
  const std::string_view line(data, size * count);
  exchange.received_ += line.size();
  if (exchange.received_ > kHeaders) return 0;
  try {
    if (line.starts_with("HTTP/")) {  // of the last answer, when there are several (100, 103)
      exchange.response_.headers.clear();
      exchange.received_ = 0;
    }
    const auto colon = line.find(':');
    if (trimmed(line).empty()) exchange.begin_body();
    if (colon == std::string_view::npos) return line.size();
    exchange.response_.headers[lower(std::string(line.substr(0, colon)))] = trimmed(line.substr(colon + 1));
    return line.size();
  } catch (...) {
    exchange.thrown_ = std::current_exception();
    return 0;
  }
}

std::size_t Exchange::on_body_bytes(char* data, std::size_t size, std::size_t count, void* self) noexcept {
  auto& exchange = *static_cast<Exchange*>(self);
  try {
    return exchange.append_body({data, size * count}) ? size * count : 0;
  } catch (...) {
    exchange.thrown_ = std::current_exception();
    return 0;
  }
}

bool Exchange::is_streamed() const {
  long status = 0;
  curl_easy_getinfo(easy_, CURLINFO_RESPONSE_CODE, &status);
  return request_.on_body && status >= 200 && status < 300;
}

void Exchange::begin_body() {
  received_ = 0;
  if (is_streamed()) request_.on_body({});
}

bool Exchange::append_body(std::string_view piece) {
  const bool streamed = is_streamed();
  const std::size_t limit = request_.on_body && !streamed ? kErrorBody : request_.max_body;
  const std::size_t before = streamed ? received_ : response_.body.size();
  const bool endless = streamed && limit == 0;
  too_large_ = !endless && piece.size() > limit - std::min(limit, before);
  if (too_large_) return false;
  if (!streamed) {
    response_.body.append(piece);
  } else {
    received_ = before + piece.size();
    request_.on_body(piece);
  }
  return true;
}

void Exchange::fail(CURLcode ended) const {
  const std::string why = error_[0] != '\0' ? error_ : curl_easy_strerror(ended);
  if (too_large_) {
    throw sdk::Failure(DRIFTD_BUDGET,
                       what_ + ": the answer is larger than " + std::to_string(request_.max_body) + " bytes");
  }
  if (is_local_file(ended))
    throw sdk::Failure(DRIFTD_INVALID, what_ + ": a certificate or key of the settings: " + why);
  if (ended == CURLE_UNSUPPORTED_PROTOCOL || ended == CURLE_URL_MALFORMAT) {
    throw sdk::Failure(DRIFTD_INVALID, what_ + ": " + why + "; expected a URL of http or https");
  }
  if (ended == CURLE_PEER_FAILED_VERIFICATION) {
    throw sdk::Failure(DRIFTD_UNAVAILABLE, what_ + ": the server's certificate is not trusted: " + why +
                                               "; check the CA and the server name of the settings");
  }
  throw sdk::Failure(ended == CURLE_OUT_OF_MEMORY ? DRIFTD_INTERNAL : DRIFTD_UNAVAILABLE, what_ + ": " + why);
}

Response Exchange::response(CURLcode ended) {
  if (thrown_) std::rethrow_exception(thrown_);
  if (ended != CURLE_OK) fail(ended);
  long status = 0;
  char* redirect = nullptr;
  curl_off_t retry_after = 0;
  curl_easy_getinfo(easy_, CURLINFO_RESPONSE_CODE, &status);
  curl_easy_getinfo(easy_, CURLINFO_REDIRECT_URL, &redirect);
  curl_easy_getinfo(easy_, CURLINFO_RETRY_AFTER, &retry_after);
  response_.status = static_cast<int>(status);
  if (redirect != nullptr) response_.redirect_url = redirect;
  response_.retry_after_ms = std::clamp<curl_off_t>(retry_after, 0, kRetryAfterMost) * 1000;
  return std::move(response_);
}

}  // namespace driftd::http
