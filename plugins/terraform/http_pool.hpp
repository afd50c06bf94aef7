// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "http/client.hpp"
#include "terraform/source.hpp"

namespace driftd::terraform {

/// Deadline of a probe: 0.9 s from now.
using ProbeDeadline = std::chrono::steady_clock::time_point;
inline ProbeDeadline probe_deadline() { return std::chrono::steady_clock::now() + std::chrono::milliseconds(900); }

/// HTTP clients of a source: connections that stay open, each with one request at a time. Thread-safe.
class HttpPool {
 public:
  HttpPool(const Settings& settings, http::Tls tls);

  /// Sends a GET that must end within the call time-out; returns a response of any status. `headers` may hold secrets.
  http::Response get(sdk::Call& call, const std::string& url, std::vector<std::string> headers = {});
  /// The same, but writes a 2xx body into the spool, which is not finished.
  http::Response get_into(sdk::Call& call, const std::string& url, std::vector<std::string> headers, Spool& to);
  /// Sends a GET that must end by `end`; reads at most the first 64 KiB of a 2xx body.
  http::Response probe(sdk::Call& call, const std::string& url, std::vector<std::string> headers,
                       ProbeDeadline end = probe_deadline());
  /// Sends any other request: a stream, a long poll.
  http::Response send(sdk::Call& call, const http::Request& request);

 private:
  /// Returns a GET with the time-out of the settings.
  http::Request request(const std::string& url, std::vector<std::string> headers) const;

  const http::Options options_;
  const std::chrono::milliseconds call_;             ///< time-out of one request
  std::mutex mutex_;                                 ///< guards `idle_`
  std::vector<std::unique_ptr<http::Client>> idle_;  ///< clients whose last request did not throw
};

/// Texts for an error status: `right` is what a 403 lacks, `login` what a 401 rejects.
struct Refusal {
  std::string what;          ///< "GET https://host/path"
  std::string right, login;  ///< for DENIED and UNAUTHENTICATED
};
/// Throws the failure of an error status. 404, 409, 410 and 412 become UNAVAILABLE: a missing object proves no
/// deletion.
[[noreturn]] void refuse(const http::Response& response, const Refusal& refusal);

/// Returns `https://host[:port]` to put before `path`, without a slash at the end. Throws INVALID if the URL is not
/// http or https.
std::string base_url(const std::string& setting, const std::string& url);
/// Returns `Authorization: Basic …`.
std::string basic_auth(const std::string& user, const std::string& password);
std::string base64(std::string_view bytes);  ///< RFC 4648 with padding
/// Decodes base64. Throws CORRUPT with `what`.
std::string from_base64(std::string_view text, const std::string& what);

}  // namespace driftd::terraform
