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

  CURL* easy() const { return easy_; }
  /// Returns true while the request waits for a connection or for its approval.
  bool waits() const { return !sent_; }
  /// Returns the response once libcurl has ended the request with `ended`. Rethrows what on_body threw.
  Response response(CURLcode ended);

 private:
  static int begin_request(void* self, char* to, char* from, int to_port, int from_port) noexcept;
  static std::size_t on_header(char* data, std::size_t size, std::size_t count, void* self) noexcept;
  static std::size_t on_body_bytes(char* data, std::size_t size, std::size_t count, void* self) noexcept;
  void add_header(const std::string& line);
  void set_request();
  void set_tls(const Tls& tls);
  void set_server_name(const std::string& name);
  void set_blob(CURLoption option, const std::string& pem);
  [[noreturn]] void fail(CURLcode ended) const;
  bool is_streamed() const;
  void begin_body();
  bool append_body(std::string_view piece);
  void release();

  sdk::Call& call_;
  ConnectionGuard& connection_guard_;
  Request request_;
  Response response_;
  std::string what_;
  CURL* easy_ = nullptr;
  curl_slist* headers_ = nullptr;
  curl_slist* connect_to_ = nullptr;
  std::size_t received_ = 0;
  bool sent_ = false, too_large_ = false;
  std::exception_ptr thrown_;
  char error_[CURL_ERROR_SIZE] = {};
};

}  // namespace driftd::http
