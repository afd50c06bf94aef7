// SPDX-License-Identifier: Apache-2.0
// A request and its answer, as providers that read HTTP APIs need them.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "driftd/sdk/types.hpp"

namespace driftd::sdk {
class Call;
}

namespace driftd::http {

/// TLS 1.2 or newer. A configured CA replaces the system's. Files are read again for each connection.
struct Tls {
  std::string ca_file, ca_pem;                    ///< both empty: the CAs of the system
  std::string certificate_file, certificate_pem;  ///< client certificate with its chain
  std::string key_file, key_pem;                  ///< of the client certificate
  std::string server_name;                        ///< name that the certificate must carry; empty: the host of the URL
  bool verify = true;                             ///< false: the certificate is not verified
  friend bool operator==(const Tls&, const Tls&) = default;
};

/// Options of all requests of a client. Proxy settings, netrc and other parts of the environment are never used.
struct Options {
  Tls tls;                                  ///< for https
  std::chrono::milliseconds connect{5000};  ///< until a connection is made, TLS included
  bool http2 = false;  ///< used over TLS if the server offers it; concurrent requests then share a connection
  std::string user_agent = "driftd";
  /// Runs after a new connection was made and before a request uses it. If it throws, that connection, its request and
  /// all requests that wait for a connection end; requests over approved connections go on. It may send requests
  /// through other clients.
  std::function<void(sdk::Call&)> on_connection{};
};

struct Request {
  std::string url;                            ///< http or https; user and password in it are refused
  std::string method = "GET";                 ///< in capitals
  std::vector<std::string> headers{};         ///< `Name: value`; may hold secrets, wiped after use
  std::string body{};                         ///< may hold secrets, wiped after use
  std::chrono::milliseconds timeout{20'000};  ///< from the start to the last byte; 0: none
  std::chrono::seconds idle{0};               ///< maximum time without a byte; 0: none
  std::size_t max_body = 64u << 20;           ///< maximum bytes after decompression; more is BUDGET
  int redirects = 0;                          ///< maximum redirects that are followed: same origin, GET and HEAD only
  /// Receives the body of a 2xx response piece by piece; it is then not kept, but still counted unless `max_body` is 0
  /// (no limit). An empty piece comes first and says that such a response has begun. Runs on the caller's thread; an
  /// exception ends the request and comes out of send() or run().
  std::function<void(std::string_view)> on_body{};
};

struct Response {
  int status = 0;                              ///< of HTTP
  std::map<std::string, std::string> headers;  ///< names in lower case; the last value if a name repeats
  std::string body;                            ///< empty if it was streamed
  std::int64_t sent_ns = 0;                    ///< wall clock when the request was sent
  std::int64_t retry_after_ms = 0;             ///< from Retry-After, at most one hour; 0: none
  std::string redirect_url;                    ///< absolute URL; only set for a 3xx response

  bool ok() const { return status >= 200 && status < 300; }  ///< any 2xx
  /// Empty if there is no such header.
  std::string header(const std::string& lower_case_name) const {
    const auto found = headers.find(lower_case_name);
    return found == headers.end() ? std::string() : found->second;
  }
};

/// Maps an HTTP status to the code that tells the scheduler what to do, for systems that give it no other meaning: 401
/// UNAUTHENTICATED, 403 DENIED, 404 NOT_FOUND, 409 and 412 CONFLICT, 410 CURSOR_EXPIRED, 429 THROTTLED, 408 and 5xx
/// UNAVAILABLE (501, 505: UNSUPPORTED), other 4xx INVALID, the rest CORRUPT.
driftd_status code_of(int status);

/// Returns code_of() as a Failure whose text holds `what` ("GET https://host/path"), the status and `detail`, which
/// must not hold a secret. Retry-After is passed on.
sdk::Failure failure_of(const Response& response, const std::string& what, const std::string& detail = {});

/// `GET https://host:port/path`: without user, query and fragment.
std::string name_of(const Request& request);

/// Escapes all but the unreserved characters of RFC 3986 as %XX.
std::string escape(std::string_view text);

/// Returns the seconds since 1970 of a date in a header. Empty if it is none.
std::optional<std::int64_t> parse_date(const std::string& text);

/// Overwrites a text that may be secret, in a way that the optimiser keeps.
void wipe(std::string& text);

}  // namespace driftd::http
