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

/// When a probe must have ended: 0.9 s from now.
using ProbeDeadline = std::chrono::steady_clock::time_point;
inline ProbeDeadline probe_deadline() { return std::chrono::steady_clock::now() + std::chrono::milliseconds(900); }

/// HTTP for a source: connections that stay open, one request at a time on each. Any thread.
class HttpPool {
 public:
  HttpPool(const Settings& settings, http::Tls tls);

  /// A GET that is answered within the call time-out; the answer may be of any status. `headers` may hold secrets.
  http::Response get(sdk::Call& call, const std::string& url, std::vector<std::string> headers = {});
  /// The same; a 2xx body goes into the spool, which is not finished.
  http::Response get_into(sdk::Call& call, const std::string& url, std::vector<std::string> headers, Spool& to);
  /// Answered by `end`; of a 2xx body at most the first 64 KiB are taken.
  http::Response probe(sdk::Call& call, const std::string& url, std::vector<std::string> headers,
                       ProbeDeadline end = probe_deadline());
  /// Anything else: a stream, a long poll.
  http::Response send(sdk::Call& call, const http::Request& request);

 private:
  http::Request request(const std::string& url, std::vector<std::string> headers) const;

  const http::Options options_;
  const std::chrono::milliseconds call_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<http::Client>> idle_;
};

/// How a status that is no success is told; `right` names what a 403 lacks, `login` what a 401 refuses.
struct Refusal {
  std::string what;  ///< "GET https://host/path"
  std::string right, login;
};
[[noreturn]] void refuse(const http::Response& response, const Refusal& refusal);

/// `https://host[:port]` in front of `path`, however the setting ends. Throws sdk::Failure INVALID: no http or https
/// URL.
std::string base_url(const std::string& setting, const std::string& url);
/// `Authorization: Basic …`.
std::string basic_auth(const std::string& user, const std::string& password);
std::string base64(std::string_view bytes);
/// The bytes; throws sdk::Failure CORRUPT with `what`.
std::string from_base64(std::string_view text, const std::string& what);

}  // namespace driftd::terraform
