// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <curl/curl.h>
#include <exception>
#include <optional>
#include <string>

#include "http/http.hpp"

namespace driftd::http {

/// One request as libcurl sees it. Its address must not change.
class Exchange {
 public:
  /// INVALID: no URL that can be asked.
  Exchange(const Options& options, Request request, std::int64_t sent_ns);
  ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  CURL* easy() const { return easy_; }
  /// The answer, once libcurl said how it ended. Throws what on_body threw.
  Response response(CURLcode ended);

 private:
  static std::size_t take_header(char* data, std::size_t size, std::size_t count, void* self) noexcept;
  static std::size_t take_body(char* data, std::size_t size, std::size_t count, void* self) noexcept;
  void add_header(const std::string& line);
  void set_request();
  void set_tls(const Tls& tls);
  void set_server_name(const std::string& name);
  void set_blob(CURLoption option, const std::string& pem);
  [[noreturn]] void fail(CURLcode ended) const;
  bool is_streamed() const;
  void begin_body();
  bool take(std::string_view piece);
  void release();

  Request request_;
  Response response_;
  std::string what_;
  CURL* easy_ = nullptr;
  curl_slist* headers_ = nullptr;
  curl_slist* connect_to_ = nullptr;
  std::size_t received_ = 0;
  bool too_large_ = false;
  std::exception_ptr thrown_;
  char error_[CURL_ERROR_SIZE] = {};
};

}  // namespace driftd::http
