// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <curl/curl.h>
#include <exception>
#include <optional>
#include <string>

#include "http/connection_guard.hpp"
#include "http/http.hpp"

namespace driftd::http {

/// One request as libcurl sees it. Its address must not change, and it must not outlive its call.
class Exchange {
 public:
  /// `guard` must outlive it. Throws INVALID if the URL cannot be used.
  Exchange(sdk::Call& call, const Options& options, ConnectionGuard& guard, Request request);
  ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  CURL* easy() const { return easy_; }  ///< owned; valid as long as this object
  /// Returns true while the request waits for a connection or for its approval.
  bool waits() const { return !sent_; }
  /// Returns the response once libcurl has ended the request with `ended`. Rethrows what on_body threw.
  Response response(CURLcode ended);

 private:
  /// Callbacks of libcurl; `self` is the exchange. An exception is kept in `thrown_` and ends the request.
  static int begin_request(void* self, char* to, char* from, int to_port, int from_port) noexcept;
  static std::size_t on_header(char* data, std::size_t size, std::size_t count, void* self) noexcept;
  static std::size_t on_body_bytes(char* data, std::size_t size, std::size_t count, void* self) noexcept;
  /// Throws INVALID if the line holds a line break.
  void add_header(const std::string& line);
  void set_request();  ///< method, headers, body and time limits
  void set_tls(const Tls& tls);
  /// Makes TLS verify this name; the connection still goes to the host of the URL.
  void set_server_name(const std::string& name);
  void set_blob(CURLoption option, const std::string& pem);  ///< libcurl copies the text
  /// Throws BUDGET (body too large), INVALID (a file of the settings, the URL), INTERNAL (no memory) or UNAVAILABLE.
  [[noreturn]] void fail(CURLcode ended) const;
  bool is_streamed() const;                  ///< the body goes to on_body: a 2xx answer of a request that has one
  void begin_body();                         ///< the headers are complete
  bool append_body(std::string_view piece);  ///< false: it is larger than allowed
  void release();                            ///< frees what libcurl holds and wipes headers and body

  sdk::Call& call_;
  ConnectionGuard& connection_guard_;
  Request request_;
  Response response_;
  std::string what_;  ///< `GET https://host/path`, for errors
  CURL* easy_ = nullptr;
  curl_slist* headers_ = nullptr;  ///< owned; may hold secrets
  curl_slist* connect_to_ = nullptr;
  std::size_t received_ = 0;  ///< bytes of the headers, then of a streamed body
  bool sent_ = false, too_large_ = false;
  std::exception_ptr thrown_;  ///< by on_body or by the guard
  char error_[CURL_ERROR_SIZE] = {};
};

}  // namespace driftd::http
