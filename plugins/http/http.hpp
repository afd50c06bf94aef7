// SPDX-License-Identifier: Apache-2.0
// A request and its answer, as providers that read HTTP APIs need them.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "driftd/sdk/types.hpp"

namespace driftd::sdk {
class Call;
}

namespace driftd::http {

/// TLS 1.2 or newer. A CA of one's own replaces the system's. Files are read anew by each connection.
struct Tls {
  std::string ca_file, ca_pem;                    ///< both empty: the system's CAs
  std::string certificate_file, certificate_pem;  ///< of the client, with its chain
  std::string key_file, key_pem;
  std::string server_name;  ///< that the certificate must bear; empty: the URL's host
  bool verify = true;       ///< false: whoever answers is believed
  friend bool operator==(const Tls&, const Tls&) = default;
};

/// What all requests of a client share. No proxy, netrc or other thing of the environment is used.
struct Options {
  Tls tls;
  std::chrono::milliseconds connect{5000};
  bool http2 = false;  ///< over TLS, where the server has it: requests at once share a connection
  std::string user_agent = "driftd";
  /// Runs after a new connection was made, before a request goes over it. What it throws ends that connection, that
  /// request and the others that wait for one; requests over connections that it agreed to go on. It may send requests
  /// through other clients.
  std::function<void(sdk::Call&)> on_connection{};
};

struct Request {
  std::string url;  ///< http or https; user and password in it are refused
  std::string method = "GET";
  std::vector<std::string> headers{};         ///< `Name: value`; may hold secrets, wiped after use
  std::string body{};                         ///< may hold secrets, wiped after use
  std::chrono::milliseconds timeout{20'000};  ///< from the start to the last byte; 0: none
  std::chrono::seconds idle{0};               ///< without one byte; 0: none
  std::size_t max_body = 64u << 20;           ///< bytes after decompression; more is BUDGET
  int redirects = 0;                          ///< followed to the same origin, of GET and HEAD; others are answers
  /// Takes the body of a 2xx answer piece by piece, which then is not kept (but still counted when `max_body` is not
  /// 0: 0 is without end); an empty piece first says that such an answer has begun. Runs on the caller's thread; an
  /// exception ends the request and comes out of send() or run().
  std::function<void(std::string_view)> on_body{};
};

struct Response {
  int status = 0;
  std::map<std::string, std::string> headers;  ///< names in lower case; of two the last
  std::string body;
  std::int64_t sent_ns = 0;         ///< wall clock when the request was sent
  std::int64_t retry_after_ms = 0;  ///< of Retry-After, at most an hour; 0: none
  std::string redirect_url;         ///< absolute, of a 3xx answer

  bool ok() const { return status >= 200 && status < 300; }
  std::string header(const std::string& lower_case_name) const {
    const auto found = headers.find(lower_case_name);
    return found == headers.end() ? std::string() : found->second;
  }
};

/// What a scheduler should do about an answer of this status, where its system gives it no other meaning: 401
/// UNAUTHENTICATED, 403 DENIED, 404 NOT_FOUND, 409 and 412 CONFLICT, 410 CURSOR_EXPIRED, 429 THROTTLED, 408 and 5xx
/// UNAVAILABLE (501, 505: UNSUPPORTED), other 4xx INVALID, the rest CORRUPT.
driftd_status code_of(int status);

/// That, as a Failure: `what` ("GET https://host/path"), the status and `detail`, which must hold no secret.
/// Retry-After is handed on.
sdk::Failure failure_of(const Response& response, const std::string& what, const std::string& detail = {});

/// `GET https://host:port/path`: without user, query and fragment.
std::string name_of(const Request& request);

/// RFC 3986: all but unreserved characters as %XX.
std::string escape(std::string_view text);

/// Overwrites text that may be secret; the optimiser does not take it away.
void wipe(std::string& text);

}  // namespace driftd::http
